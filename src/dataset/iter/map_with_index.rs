use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::memory::Memory;
use crate::dataset::run::opaque::{debug_name, debug_with_parent};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;
use crate::exec::Runtime;

/// See [`IterDataset::map_with_index`].
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterMapWithIndex<D, F> {
    parent: D,
    f: Arc<F>,
    name: &'static str,
    params: String,
    stage: StageId,
}

/// See [`IterDataset::enumerate`].
pub type IterEnumerate<D> = IterMapWithIndex<D, fn(u64, <D as IterDataset>::Item) -> Result<Numbered<D>>>;

/// An element of `D` and its number in front of it.
pub type Numbered<D> = (u64, <D as IterDataset>::Item);

impl<D: Stage, F> IterMapWithIndex<D, F> {
    pub(super) fn new(parent: D, f: F) -> Self {
        Self::named(parent, "map_with_index", String::new(), f)
    }

    /// The same under another name, where `params` say all that `f` does.
    pub(crate) fn named(parent: D, name: &'static str, params: String, f: F) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, f: Arc::new(f), name, params, stage }
    }
}

impl<D: IterDataset> IterEnumerate<D> {
    pub(super) fn enumerate(parent: D) -> Self {
        Self::named(parent, ENUMERATE, String::new(), |index, element| Ok((index, element)))
    }
}

/// The name of the stage that puts numbers to elements.
pub(crate) const ENUMERATE: &str = "enumerate";

impl<D: Stage, F> Stage for IterMapWithIndex<D, F> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn params(&self) -> String {
        self.params.clone()
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
}

impl<D, U, F> IterDataset for IterMapWithIndex<D, F>
where
    D: IterDataset,
    U: Send + 'static,
    F: Fn(u64, D::Item) -> Result<U> + Send + Sync + 'static,
{
    type Item = U;
    type Iter = IterMapWithIndexIter<D::Iter, F>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let (parent, f) = (self.parent.iter(run)?, self.f.clone());
        Ok(IterMapWithIndexIter { parent, f, counter: 0, name: self.name, stage: self.stage })
    }
}

/// A pass over [`IterMapWithIndex`].
pub struct IterMapWithIndexIter<I, F> {
    parent: I,
    f: Arc<F>,
    counter: u64,
    name: &'static str,
    stage: StageId,
}

/// Where a pass is that counts the elements it has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CounterState<S> {
    /// Where the parent is.
    pub parent: S,
    /// Elements seen.
    pub counter: u64,
}

impl<I, U, F> DatasetIterator for IterMapWithIndexIter<I, F>
where
    I: DatasetIterator,
    F: Fn(u64, I::Item) -> Result<U> + Send + Sync,
{
    type Item = U;
    type State = CounterState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        let index = self.counter;
        self.counter = index.saturating_add(1);
        match cx.timed(self.stage, || (self.f)(index, element)) {
            Ok(mapped) => Ok(Some(mapped)),
            Err(error) => Err(cx.blame(self.stage, self.name, error).index(index)),
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

debug_with_parent!(IterMapWithIndex<D, F>);
debug_name!(IterMapWithIndexIter<I, F>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::Range;
    use crate::{Error, MapDataset};

    #[test]
    fn counts_what_arrives_and_resumes() {
        let ds = Range::new(0, 30).to_iter().filter(|x| x % 3 == 1).map_with_index(|i, x| Ok((i, x)));
        assert_eq!(laws::check(&ds), (0..10).map(|i| (i, 3 * i as i64 + 1)).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_go_on_behind_a_resume() {
        let ds = Range::new(0, 20).to_iter().filter(|x| x % 4 == 0).enumerate();
        assert_eq!(laws::check(&ds), [(0, 0), (1, 4), (2, 8), (3, 12), (4, 16)]);
        assert_eq!(crate::dataset::label(&ds), "enumerate");
    }

    #[test]
    fn an_error_uses_its_index_up() {
        let ds =
            Range::new(0, 3).to_iter().map_with_index(|i, x| if i == 1 { Err(Error::data("no")) } else { Ok((i, x)) });
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        assert_eq!(iter.next(&mut cx).unwrap(), Some((0, 0)));
        assert_eq!(iter.next(&mut cx).unwrap_err().to_string(), "stage 2 map_with_index: element 1: no");
        assert_eq!(iter.next(&mut cx).unwrap(), Some((2, 2)));
    }
}
