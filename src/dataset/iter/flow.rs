//! Stages of streams with one parent: each is a [`Flow`], and [`Flowing`] does for all of them what a stage does.

use std::fmt;

use super::dealt::{PartPass, PartPassOf};
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::facts::Facts;
use crate::dataset::memory::Memory;
use crate::dataset::plan::{Plan, PlanOf, Planning};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::element::Name;
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;

/// A change of a stream: how a pass over what it makes starts, out of a pass `I` over its parent. [`Flowing`] makes a stage of it.
pub trait Flow<I: DatasetIterator>: Facts {
    /// A pass.
    type Pass: DatasetIterator;

    /// Starts a pass at the beginning, as the work of `stage`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if it cannot work as configured.
    fn start(&self, parent: I, stage: StageId) -> Result<Self::Pass>;

    /// The same over the rows of a part of every batch: for a change that hands on batches as they are, and so those rows. `None` for any other.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    fn start_part(&self, parent: PartPass<I::Item, I::State>, stage: StageId) -> Result<Option<PartPassBy<I, Self>>>
    where
        Self: Sized,
        I::Item: 'static,
    {
        let _ = (parent, stage);
        Ok(None)
    }

    /// The arrays of the parent's elements whose lengths decide what it does, where the stages behind it ask for those of `behind`.
    #[doc(hidden)]
    fn asks(&self, behind: &[Name]) -> Vec<Name> {
        behind.to_vec()
    }

    /// Starts a plan of what it makes, out of that of its parent, where the stages behind it ask for the lengths of the arrays `behind`: for a
    /// change that decides by keys alone. `None` for any other.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[doc(hidden)]
    fn start_plan(
        &self,
        parent: Plan<I::Item, I::State>,
        stage: StageId,
        behind: &[Name],
    ) -> Result<Option<PlanBy<I, Self>>>
    where
        Self: Sized + 'static,
        I::Item: 'static,
    {
        let _ = (parent, stage, behind);
        Ok(None)
    }
}

/// The plan that the change `F` makes of that of a parent whose passes are `I`.
pub type PlanBy<I, F> =
    Plan<<<F as Flow<I>>::Pass as DatasetIterator>::Item, <<F as Flow<I>>::Pass as DatasetIterator>::State>;

/// The pass over a part that the change `F` starts behind a pass `I`.
pub type PartPassBy<I, F> =
    PartPass<<<F as Flow<I>>::Pass as DatasetIterator>::Item, <<F as Flow<I>>::Pass as DatasetIterator>::State>;

/// The stream `D` as `F` has changed it: `limit`, `window_shuffle` and all other stages of one parent.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Flowing<D, F> {
    parent: D,
    flow: F,
    stage: StageId,
}

impl<D: Stage, F: Facts> Flowing<D, F> {
    /// Puts behind `parent` the change that `flow` makes for it.
    pub fn new(parent: D, flow: impl FnOnce(&D) -> F) -> Self {
        Self { stage: stage_after(&[&parent]), flow: flow(&parent), parent }
    }
}

impl<D: Stage, F: Facts> Stage for Flowing<D, F> {
    fn name(&self) -> &'static str {
        self.flow.name()
    }
    fn params(&self) -> String {
        self.flow.params()
    }
    fn role(&self) -> Role {
        self.flow.role()
    }
    fn is_native(&self) -> bool {
        self.flow.is_native()
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn memory(&self) -> Option<Memory> {
        self.flow.memory()
    }
    fn check(&self) -> Result<()> {
        self.flow.check()
    }
}

impl<D, F> IterDataset for Flowing<D, F>
where
    D: IterDataset,
    F: Flow<D::Iter, Pass: DatasetIterator<Item: Send + 'static> + 'static> + 'static,
{
    type Item = <F::Pass as DatasetIterator>::Item;
    type Iter = F::Pass;

    fn iter(&self, run: &Runtime) -> Result<F::Pass> {
        self.flow.start(self.parent.iter(run)?, self.stage)
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        match self.parent.iter_part(run, part)? {
            Some(parent) => self.flow.start_part(parent, self.stage),
            None => Ok(None),
        }
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        match self.parent.plan(&planning.asking(&self.flow.asks(planning.names)))? {
            Some(parent) => self.flow.start_plan(parent, self.stage, planning.names),
            None => Ok(None),
        }
    }
}

impl<D: fmt::Debug, F: Facts> fmt::Debug for Flowing<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.flow.name()).field("parent", &self.parent).finish_non_exhaustive()
    }
}
