//! Stages of streams with one parent: each is a [`Flow`], and [`Flowing`] does for all of them what a stage does.

use std::fmt;

use super::dealt::{PartPass, PartPassOf};
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::facts::Facts;
use crate::dataset::memory::Memory;
use crate::dataset::plan::{Plan, PlanOf, Planning, UNPLANNED};
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

    /// The same, where the keys of what it makes may be recorded.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[doc(hidden)]
    fn start_noted(&self, parent: I, stage: StageId, run: &Runtime) -> Result<Self::Pass> {
        let _ = run;
        self.start(parent, stage)
    }

    /// Whether it makes batches by itself: then it is asked to [start them](Self::start_batches) out of a plan of its parent.
    #[doc(hidden)]
    fn makes_batches(&self) -> bool {
        false
    }

    /// The same as [`start_part`](Self::start_part) for a change that makes batches by itself, out of a plan of its parent.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[doc(hidden)]
    fn start_batches(
        &self,
        parent: Plan<I::Item, I::State>,
        stage: StageId,
        run: &Runtime,
        part: &Part,
    ) -> Result<Option<PartPassBy<I, Self>>>
    where
        Self: Sized,
        I::Item: 'static,
    {
        let _ = (parent, stage, run, part);
        Ok(None)
    }

    /// The arrays of the parent's elements whose lengths decide what it does, where the stages behind it ask for those of `behind`.
    #[doc(hidden)]
    fn asks(&self, behind: &[Name]) -> Vec<Name> {
        behind.to_vec()
    }

    /// Starts a plan of what it makes, out of that of its parent, where the stages behind it ask for the lengths that `planning` names: for a
    /// change that decides by keys alone. `None` for any other, and then [`unplanned`](Self::unplanned) says why.
    ///
    /// A change that hands on elements as they are, some of them or in another order, is planned by a pass of itself over stand-ins:
    /// `parent.through(|pass| self.start(pass, stage))`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    fn start_plan(
        &self,
        parent: Plan<I::Item, I::State>,
        stage: StageId,
        planning: &Planning<'_>,
    ) -> Result<Option<PlanBy<I, Self>>>
    where
        Self: Sized + 'static,
        I::Item: Send + 'static,
        <Self::Pass as DatasetIterator>::Item: Send + 'static,
    {
        let _ = (parent, stage, planning);
        Ok(None)
    }

    /// Says why there is no plan, and what to do about it, behind the name of the stage: `filter (stage 4) …`.
    #[doc(hidden)]
    fn unplanned(&self) -> &'static str {
        UNPLANNED
    }
}

/// Has a change that hands on elements as they are, whatever they are, planned by a pass of it over stand-ins; and, where it hands on `batches` as they are,
/// has the rows of a part go the same way.
macro_rules! hands_on {
    (elements) => {
        fn start_plan(
            &self,
            parent: $crate::dataset::plan::Plan<I::Item, I::State>,
            stage: $crate::cx::StageId,
            _: &$crate::dataset::plan::Planning<'_>,
        ) -> $crate::error::Result<Option<$crate::dataset::iter::PlanBy<I, Self>>>
        where
            I::Item: 'static,
        {
            parent.handing_on(|pass| Flow::start(self, pass, stage))
        }
    };
    (elements, batches) => {
        hands_on!(elements);

        fn start_part(
            &self,
            parent: $crate::dataset::iter::PartPass<I::Item, I::State>,
            stage: $crate::cx::StageId,
        ) -> $crate::error::Result<Option<$crate::dataset::iter::PartPassBy<I, Self>>>
        where
            I::Item: 'static,
        {
            Ok(Some(Box::new(Flow::start(self, parent, stage)?)))
        }
    };
}
pub(super) use hands_on;

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
    fn is_each(&self) -> bool {
        self.flow.is_each()
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
        let parent = self.parent.iter(run)?;
        if !run.reads_here() && (&self.parent as &dyn Stage).leaves_workers() {
            return self.flow.start_noted(parent, self.stage, &run.on_one_thread());
        }
        self.flow.start_noted(parent, self.stage, run)
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        if self.flow.makes_batches() {
            return match Planning::plan(&self.parent, &self.flow.asks(&[]), run)? {
                Some(plan) => self.flow.start_batches(plan, self.stage, run, part),
                None => Ok(None),
            };
        }
        let Some(parent) = self.parent.iter_part(run, part)? else { return Ok(None) };
        let pass = self.flow.start_part(parent, self.stage)?;
        if pass.is_none() {
            let why = "does not hand on batches as they are, so that it needs all of their rows";
            run.note_unplanned(self.stage.0 as usize, |id| format!("{} (stage {id}) {why}", self.flow.name()));
        }
        Ok(pass)
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let asked = self.flow.asks(planning.names);
        let Some(parent) = planning.asking(&asked).of(&self.parent)? else { return Ok(None) };
        let plan = self.flow.start_plan(parent, self.stage, planning)?;
        if plan.is_none() {
            planning.refuse(self, self.flow.unplanned());
        }
        Ok(plan)
    }
}

impl<D: fmt::Debug, F: Facts> fmt::Debug for Flowing<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.flow.name()).field("parent", &self.parent).finish_non_exhaustive()
    }
}
