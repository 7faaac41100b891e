use std::sync::Arc;

use super::map_with_index::CounterState;
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::memory::Memory;
use crate::dataset::run::opaque::{debug_name, debug_with_parent};
use crate::dataset::stage::{Role, Stage, StageSeed, stage_after};
use crate::error::Result;
use crate::exec::Runtime;
use crate::rng::{ElementRng, PhiloxKey};

/// See [`IterDataset::random_map`].
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterRandomMap<D, F> {
    parent: D,
    f: Arc<F>,
    seed: StageSeed,
    stage: StageId,
}

impl<D: Stage, F> IterRandomMap<D, F> {
    pub(super) fn new(parent: D, seed: Option<u32>, f: F) -> Self {
        let seed = StageSeed::resolve(seed, &[&parent]);
        let stage = stage_after(&[&parent]);
        Self { parent, f: Arc::new(f), seed, stage }
    }
}

impl<D: Stage, F> Stage for IterRandomMap<D, F> {
    fn name(&self) -> &'static str {
        "random_map"
    }
    fn params(&self) -> String {
        self.seed.to_string()
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::NOTHING)
    }
    fn check(&self) -> Result<()> {
        self.seed.get().map(drop)
    }
}

impl<D, U, F> IterDataset for IterRandomMap<D, F>
where
    D: IterDataset,
    U: Send + 'static,
    F: Fn(D::Item, &mut ElementRng) -> Result<U> + Send + Sync + 'static,
{
    type Item = U;
    type Iter = IterRandomMapIter<D::Iter, F>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let key = PhiloxKey::from_seed(self.seed.get()?.into());
        Ok(IterRandomMapIter { parent: self.parent.iter(run)?, f: self.f.clone(), key, counter: 0, stage: self.stage })
    }
}

/// A pass over [`IterRandomMap`].
pub struct IterRandomMapIter<I, F> {
    parent: I,
    f: Arc<F>,
    key: PhiloxKey,
    counter: u64,
    stage: StageId,
}

impl<I, U, F> DatasetIterator for IterRandomMapIter<I, F>
where
    I: DatasetIterator,
    F: Fn(I::Item, &mut ElementRng) -> Result<U> + Send + Sync,
{
    type Item = U;
    type State = CounterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        let index = self.counter;
        self.counter = index.saturating_add(1);
        match cx.timed(self.stage, || (self.f)(element, &mut self.key.element(index, 0))) {
            Ok(mapped) => Ok(Some(mapped)),
            Err(error) => Err(cx.blame(self.stage, "random_map", error).index(index)),
        }
    }

    fn state(&self) -> Self::State {
        CounterState { parent: self.parent.state(), counter: self.counter }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.counter = state.counter;
        self.parent.restore(state.parent, cx)
    }
}

debug_with_parent!(IterRandomMap<D, F>);
debug_name!(IterRandomMapIter<I, F>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{ErrorKind, MapDataset};

    #[test]
    fn draws_depend_on_seed_and_place_only() {
        let draw = |seed: u32| Range::new(0, 40).to_iter().random_map(seed, |x, rng| Ok((x, rng.random_raw())));
        let all = laws::check(&draw(5));
        assert_eq!(all, laws::check(&draw(5)));
        assert!(all.iter().zip(draw(6).collect().unwrap()).all(|(a, b)| a.1 != b.1));
        let same_draws = Range::new(100, 140).to_iter().random_map(5, |_, rng| Ok(rng.random_raw())).collect().unwrap();
        assert!(all.iter().map(|(_, draw)| *draw).eq(same_draws));
    }

    #[test]
    fn the_place_is_counted_after_what_was_dropped() {
        let ds =
            Range::new(0, 40).seed(3).to_iter().filter(|x| x % 2 == 0).random_map(None, |_, rng| Ok(rng.random_raw()));
        let all = laws::check(&ds);
        let seed = ds.params();
        let key = PhiloxKey::from_seed(seed.strip_prefix("seed=").unwrap().parse().unwrap());
        assert_eq!(all, (0..20).map(|i| key.element(i, 0).random_raw()).collect::<Vec<_>>());
    }

    #[test]
    fn needs_a_seed() {
        let ds = Range::new(0, 9).to_iter().random_map(None, |x, _| Ok(x));
        assert_eq!(ds.collect().unwrap_err().kind(), ErrorKind::Config);
    }
}
