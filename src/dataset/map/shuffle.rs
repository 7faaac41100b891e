use super::MapDataset;
use super::order::through_places;
use crate::cx::{Cx, StageId};
use crate::dataset::memory::Memory;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage, StageSeed, stage_after};
use crate::error::Result;
use crate::rng::EpochShuffle;

/// See [`MapDataset::shuffle`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Shuffle<D> {
    parent: D,
    seed: StageSeed,
    /// None where there is no seed.
    order: Option<EpochShuffle>,
    stage: StageId,
}

impl<D: MapDataset> Shuffle<D> {
    pub(super) fn new(parent: D, seed: Option<u32>) -> Self {
        let seed = StageSeed::resolve(seed, &[&parent]);
        let order = seed.get().ok().map(|seed| EpochShuffle::new(parent.len(), seed));
        Self { stage: stage_after(&[&parent]), parent, seed, order }
    }

    /// Where `indices` are found; `None` where there is no seed.
    fn places(&self, indices: &[u64]) -> Option<Vec<u64>> {
        let mut places = indices.to_vec();
        self.order.as_ref()?.get_many(&mut places);
        Some(places)
    }
}

impl<D: MapDataset> Stage for Shuffle<D> {
    fn name(&self) -> &'static str {
        "shuffle"
    }
    fn params(&self) -> String {
        self.seed.to_string()
    }
    fn role(&self) -> Role {
        Role::Order
    }
    fn is_native(&self) -> bool {
        true
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::bytes(self.order.as_ref().map_or(0, EpochShuffle::table_bytes)))
    }
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(places) = self.places(next.indices()) {
            self.parent.will_read(next.at(&places));
        }
    }
    fn check(&self) -> Result<()> {
        self.seed.get().map(drop)
    }
}

impl<D: MapDataset> MapDataset for Shuffle<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let Some(order) = &self.order else {
            self.seed.get().map_err(|e| cx.blame(self.stage, "shuffle", e))?;
            return Ok(None);
        };
        let at = cx.consumed(self.stage, || order.get(index));
        let element = self.parent.get(at, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    through_places!(timed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::INFINITE;
    use crate::dataset::map::Range;

    #[test]
    fn the_order_is_grains_and_another_in_each_epoch() {
        let ds = Range::new(0, 10).shuffle(42);
        assert_eq!(ds.collect().unwrap(), [8, 6, 7, 9, 0, 5, 1, 2, 4, 3]);
        let seeded = Range::new(0, 10).seed(42).shuffle(None);
        assert_eq!(seeded.collect().unwrap(), [1, 7, 6, 9, 0, 8, 4, 5, 3, 2]);
        // Epoch 1 of a seed is epoch 0 of the next seed, and reads epoch 1 of the parent.
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
        assert_eq!(ds.check().unwrap_err().message(), "a random stage has no seed");
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap_err().stage_name(), Some("1 shuffle"));
        assert_eq!(ds.params(), "seed=none");
        assert_eq!(Range::new(0, 3).shuffle(9).params(), "seed=9");
    }
}
