//! The order of a dataset over its epochs: a new permutation for each.

use std::sync::Arc;

use crossbeam_utils::sync::ShardedLock;

use super::IndexShuffle;
use super::small_block::BLOCK;
use crate::sync::Regardless;

/// Epochs whose tables are found without a lock: most runs have no more.
const FIRST: usize = 8;
/// Tables of the epochs after those.
const SLOTS: usize = 4;

/// Grain's shuffle of a dataset of `len` elements, over all its epochs.
///
/// Index `epoch * len + j` becomes `epoch * len + p(j)`, where `p` is the [`IndexShuffle`] of `seed + epoch` (modulo
/// 2^32): every element comes once in every epoch. So epoch 1 of seed `s` is epoch 0 of seed `s + 1`, as in Grain.
/// ```
/// let shuffle = gristmill::rng::EpochShuffle::new(10, 42);
/// let order: Vec<u64> = (0..10).map(|i| shuffle.get(i)).collect();
/// assert_eq!(order, [8, 6, 7, 9, 0, 5, 1, 2, 4, 3]);
/// ```
/// # Cost
/// Any thread may call [`get`](Self::get); threads do not wait for each other. Above 2^16 elements nothing is kept but
/// the keys of epoch 0; others are computed for each index, in about 15 ns. Up to 2^16 elements the tables of the first
/// eight epochs and of four later ones are kept once they are read, 2 bytes per element each; of the later, epochs that
/// are a multiple of four apart take turns, under a lock that costs about 25 ns.
#[derive(Clone, Debug)]
pub struct EpochShuffle {
    len: u64,
    seed: u32,
    order: Order,
}

#[derive(Clone, Debug)]
enum Order {
    Tables(Arc<Tables>),
    Keys(IndexShuffle),
}

#[derive(Debug)]
struct Tables {
    first: [IndexShuffle; FIRST],
    later: [ShardedLock<Table>; SLOTS],
}

#[derive(Debug)]
struct Table {
    epoch: u64,
    shuffle: IndexShuffle,
}

impl EpochShuffle {
    /// The shuffle of `len` elements under `seed`.
    pub fn new(len: u64, seed: u32) -> Self {
        let order = if len > BLOCK as u64 {
            Order::Keys(of_epoch(len, seed, 0))
        } else {
            let shuffle = |epoch: usize| of_epoch(len, seed, epoch as u64);
            let slot = |slot| ShardedLock::new(Table { epoch: slot as u64, shuffle: shuffle(slot) });
            Order::Tables(Arc::new(Tables { first: std::array::from_fn(shuffle), later: std::array::from_fn(slot) }))
        };
        Self { len, seed, order }
    }

    /// Elements in one epoch.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether an epoch has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The seed of epoch 0.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// The most bytes of tables that are kept.
    pub fn table_bytes(&self) -> u64 {
        match &self.order {
            Order::Tables(_) => ((FIRST + SLOTS) * size_of::<u16>()) as u64 * self.len,
            Order::Keys(_) => 0,
        }
    }

    /// The index in the parent of the element at `index`, in the same epoch.
    ///
    /// Where `len` is 0, `index` comes back as it is.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        let epoch = index.checked_div(self.len).unwrap_or(0);
        let start = epoch * self.len;
        let offset = match &self.order {
            Order::Keys(first) if epoch == 0 => first.get(index),
            Order::Keys(_) => of_epoch(self.len, self.seed, epoch).get(index - start),
            Order::Tables(tables) => match tables.first.get(usize::try_from(epoch).unwrap_or(usize::MAX)) {
                Some(shuffle) => shuffle.get(index - start),
                None => self.look_up(&tables.later, epoch, index - start),
            },
        };
        // Only the epoch that 2^64 cuts short can wrap; its last elements have no index.
        start.wrapping_add(offset)
    }

    /// Puts [`get`](Self::get) of each of `indices` in its place.
    pub fn get_many(&self, indices: &mut [u64]) {
        match &self.order {
            Order::Keys(first) if indices.iter().all(|&index| index < self.len) => first.get_many(indices),
            _ => indices.iter_mut().for_each(|index| *index = self.get(*index)),
        }
    }

    fn look_up(&self, slots: &[ShardedLock<Table>; SLOTS], epoch: u64, offset: u64) -> u64 {
        let slot = &slots[epoch as usize % SLOTS];
        {
            let table = slot.read().regardless();
            if table.epoch == epoch {
                return table.shuffle.get(offset);
            }
        }
        let mut table = slot.write().regardless();
        if table.epoch != epoch {
            *table = Table { epoch, shuffle: of_epoch(self.len, self.seed, epoch) };
        }
        table.shuffle.get(offset)
    }
}

fn of_epoch(len: u64, seed: u32, epoch: u64) -> IndexShuffle {
    IndexShuffle::four_rounds(len.saturating_sub(1), seed.wrapping_add(epoch as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twin(index: u64, len: u64, seed: u32) -> u64 {
        let epoch = index / len;
        let key = seed.wrapping_add(epoch as u32);
        IndexShuffle::new(len - 1, key, 4).unwrap().get(index % len) + epoch * len
    }

    #[test]
    fn each_epoch_has_the_key_of_its_number() {
        for len in [1, 10, 65_536, 65_537, 1_000_000_000_000] {
            for seed in [0, 42, u32::MAX - 1] {
                let shuffle = EpochShuffle::new(len, seed);
                for epoch in [0u64, 1, 2, 5, 1, 6, 0, (1 << 32) + 3] {
                    for j in [0, len / 2, len - 1] {
                        let Some(index) = epoch.checked_mul(len).and_then(|start| start.checked_add(j)) else {
                            continue;
                        };
                        assert_eq!(shuffle.get(index), twin(index, len, seed), "len {len}, index {index}");
                    }
                }
            }
        }
    }

    #[test]
    fn threads_in_different_epochs_agree_with_one() {
        let shuffle = EpochShuffle::new(100, 7);
        let expected: Vec<u64> = (0..2000).map(|index| twin(index, 100, 7)).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (shuffle, expected) = (shuffle.clone(), &expected);
                scope.spawn(move || {
                    for i in 0..2000 {
                        let index = (i * 7 + thread * 400) % 2000;
                        assert_eq!(shuffle.get(index), expected[index as usize]);
                    }
                });
            }
        });
    }

    #[test]
    fn the_ends_of_the_number_range_are_safe() {
        assert_eq!(EpochShuffle::new(0, 1).get(17), 17);
        assert!(EpochShuffle::new(0, 1).is_empty());
        let large = EpochShuffle::new(u64::MAX, 1);
        assert!(large.get(u64::MAX - 1) < u64::MAX);
        for len in [10, 100_000] {
            EpochShuffle::new(len, 1).get(u64::MAX);
        }
    }
}
