use std::fmt;
use std::sync::Arc;

use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::Result;
use crate::exec::Runtime;

/// See [`IterDataset::map`].
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterMap<D, F> {
    parent: D,
    f: Arc<F>,
    stage: StageId,
}

impl<D: Stage, F> IterMap<D, F> {
    pub(super) fn new(parent: D, f: F) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, f: Arc::new(f), stage }
    }
}

impl<D: Stage, F> Stage for IterMap<D, F> {
    fn name(&self) -> &'static str {
        "map"
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, U, F> IterDataset for IterMap<D, F>
where
    D: IterDataset,
    U: Send + 'static,
    F: Fn(D::Item) -> Result<U> + Send + Sync + 'static,
{
    type Item = U;
    type Iter = IterMapIter<D::Iter, F>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        Ok(IterMapIter { parent: self.parent.iter(run)?, f: self.f.clone(), stage: self.stage })
    }
}

/// A pass over [`IterMap`].
pub struct IterMapIter<I, F> {
    parent: I,
    f: Arc<F>,
    stage: StageId,
}

impl<I, U, F> DatasetIterator for IterMapIter<I, F>
where
    I: DatasetIterator,
    F: Fn(I::Item) -> Result<U> + Send + Sync,
{
    type Item = U;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        match cx.timed(self.stage, || (self.f)(element)) {
            Ok(mapped) => Ok(Some(mapped)),
            Err(error) => Err(cx.blame(self.stage, "map", error)),
        }
    }

    fn state(&self) -> I::State {
        self.parent.state()
    }

    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        self.parent.restore(state, cx)
    }
}

impl<D: fmt::Debug, F> fmt::Debug for IterMap<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMap").field("parent", &self.parent).finish_non_exhaustive()
    }
}

impl<I, F> fmt::Debug for IterMapIter<I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMapIter").finish_non_exhaustive()
    }
}
