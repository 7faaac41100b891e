//! The order of a dataset over its epochs, with a new permutation for each epoch.

use std::sync::Arc;

use crossbeam_utils::sync::ShardedLock;

use super::IndexShuffle;
use super::small_block::BLOCK;
use crate::sync::Regardless;

/// Number of first epochs whose tables need no lock. Most runs have no more epochs.
const FIRST: usize = 8;
/// Number of tables for later epochs.
const SLOTS: usize = 4;

/// Grain's shuffle of a dataset of `len` elements, over all its epochs.
///
/// Index `epoch * len + j` becomes `epoch * len + p(j)`, with `p` the [`IndexShuffle`] of `seed + epoch` (modulo
/// 2^32). Every element appears once in every epoch. Epoch 1 of seed `s` equals epoch 0 of seed `s + 1`, as in Grain.
/// ```
/// let shuffle = gristmill::rng::EpochShuffle::new(10, 42);
/// let order: Vec<u64> = (0..10).map(|i| shuffle.get(i)).collect();
/// assert_eq!(order, [8, 6, 7, 9, 0, 5, 1, 2, 4, 3]);
/// ```
/// # Cost
/// Any thread may call [`get`](Self::get); threads do not wait for each other.
///
/// Above 2^16 elements, only the keys of epoch 0 are stored. Keys of other epochs are computed for each index, in about
/// 15 ns. Up to 2^16 elements, tables of 2 bytes per element are stored on first use, for the first eight epochs and
/// four later epochs. Later epochs that differ by a multiple of four share a table, under a lock that costs about 25 ns.
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
    /// Makes the shuffle of `len` elements for `seed`.
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

    /// Returns the number of elements in an epoch.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if an epoch has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the seed of epoch 0.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// Returns the maximum size in bytes of all stored tables.
    pub fn table_bytes(&self) -> u64 {
        match &self.order {
            Order::Tables(_) => ((FIRST + SLOTS) * size_of::<u16>()) as u64 * self.len,
            Order::Keys(_) => 0,
        }
    }

    /// Returns the parent index of the element at `index`. The epoch does not change.
    ///
    /// Returns `index` unchanged if `len` is 0.
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
        // Only the epoch truncated at 2^64 can wrap; its last elements have no index.
        start.wrapping_add(offset)
    }

    /// Replaces each of `indices` with the result of [`get`](Self::get).
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
