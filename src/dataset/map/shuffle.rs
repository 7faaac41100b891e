use std::borrow::Cow;

use super::order::{Order, Ordered};
use super::{MapDataset, epochs};
use crate::dataset::entry::prelude::*;
use crate::dataset::memory::Memory;
use crate::dataset::seeds::StageSeed;
use crate::error::Result;
use crate::rng::{EpochShuffle, IndexShuffle};

/// See [`MapDatasetExt::shuffle`](super::MapDatasetExt::shuffle).
pub type Shuffle<D> = Ordered<D, ShuffleOrder>;

/// The order of [`MapDatasetExt::shuffle`](super::MapDatasetExt::shuffle).
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct ShuffleOrder {
    seed: StageSeed,
    /// `None` if there is no seed.
    epochs: Option<EpochShuffle>,
}

impl ShuffleOrder {
    pub(super) fn new(parent: &impl MapDataset, seed: Option<u32>) -> Self {
        let seed = StageSeed::resolve(seed, &[parent]);
        let epochs = seed.get().ok().map(|seed| EpochShuffle::new(parent.len(), seed));
        Self { seed, epochs }
    }
}

impl Order for ShuffleOrder {
    const IS_NATIVE: bool = true;

    facts! { name: "shuffle" }

    fn params(&self) -> String {
        self.seed.to_string()
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        if let Some(epochs) = &self.epochs { Ok(Some(epochs.get(index))) } else { self.seed.get().map(|_| None) }
    }
    fn places<'a>(&self, indices: &'a [u64]) -> Option<Cow<'a, [u64]>> {
        let mut places = indices.to_vec();
        self.epochs.as_ref()?.get_many(&mut places);
        Some(places.into())
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        let seed = self.seed.get()?;
        let len = self.epochs.as_ref().map_or(0, EpochShuffle::len);
        let Some((epoch, at)) = epochs::split(place, len) else { return Ok(None) };
        let order = IndexShuffle::four_rounds(len - 1, seed.wrapping_add(epoch as u32));
        epochs::join(epoch, len, order.index_of(at)).map(Some)
    }
    fn lower(&self, place: u64) -> Option<u64> {
        epochs::start(place, self.epochs.as_ref()?.len())
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::bytes(self.epochs.as_ref().map_or(0, EpochShuffle::table_bytes)))
    }
    fn check(&self) -> Result<()> {
        self.seed.get().map(drop)
    }
}

arguments! {
    struct ShuffleArgs(seed) {
        /// Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.
        seed: Option<u32>,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::map(
    "shuffle",
    "Shuffles the elements in constant memory, with another order in every epoch. The order is Grain's.\n\n\
     A slice of a shuffled dataset has other elements in each epoch. For training and validation sets, use `split` \
     before `shuffle`.\n\n\
     ConfigError: There is no seed, neither here nor in a `seed` before the stage.",
    &Behind(|ds: BoxMap<Element>, ShuffleArgs { seed }: ShuffleArgs, _| Ok(ds.shuffle(seed).boxed())),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::cx::Cx;
    use crate::dataset::map::Range;
    use crate::dataset::{INFINITE, Stage};

    #[test]
    fn the_order_is_grains_and_another_in_each_epoch() {
        let ds = Range::new(0, 10).shuffle(42);
        assert_eq!(ds.collect().unwrap(), [8, 6, 7, 9, 0, 5, 1, 2, 4, 3]);
        let seeded = Range::new(0, 10).seed(42).shuffle(None);
        assert_eq!(seeded.collect().unwrap(), [1, 7, 6, 9, 0, 8, 4, 5, 3, 2]);
        // Epoch 1 of a seed equals epoch 0 of the next seed, and reads epoch 1 of the parent.
        let globals = |seed| Range::new(0, 10).map_with_index(|i, _| i.global).shuffle(seed);
        let mut cx = Cx::default();
        for i in 0..10 {
            let next = globals(43).get(i, &mut cx).unwrap().unwrap();
            assert_eq!(globals(42).get(10 + i, &mut cx).unwrap(), Some(10 + next));
        }
        assert_eq!(globals(u32::MAX).get(25, &mut cx).unwrap(), globals(1).get(5, &mut cx).unwrap().map(|i| i + 20));
    }

    #[test]
    fn a_trillion_elements_take_no_memory() {
        let ds = Range::new(0, 1_000_000_000_000).shuffle(7);
        let mut cx = Cx::default();
        let mut seen: Vec<i64> = (0..1000).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1000);
        assert!(seen[999] > 900_000_000_000 && seen[0] < 100_000_000_000);
    }

    #[test]
    fn nothing_and_everything_can_be_shuffled() {
        let mut cx = Cx::default();
        assert_eq!(Range::new(0, 0).shuffle(1).get(3, &mut cx).unwrap(), None);
        assert_eq!(Range::new(5, 6).shuffle(1).get(3, &mut cx).unwrap(), Some(5));
        let forever = Range::new(0, 10).repeat(None).shuffle(1);
        assert_eq!(forever.len(), INFINITE);
        assert!(forever.get(0, &mut cx).unwrap().is_some());
        assert!(forever.get(u64::MAX, &mut cx).unwrap().is_some());
    }

    #[test]
    fn without_a_seed_it_is_refused() {
        let ds = Range::new(0, 3).shuffle(None);
        assert_eq!(ds.node().describe.check().unwrap_err().message(), "a random stage has no seed");
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap_err().stage_name(), Some("1 shuffle"));
        assert_eq!(ds.node().describe.params(), "seed=none");
        assert_eq!(Range::new(0, 3).shuffle(9).node().describe.params(), "seed=9");
    }
}
