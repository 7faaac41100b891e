//! Stages of streams with a single parent. Each is a [`Flow`]; [`Flowing`] implements the stage for all of them.

use std::fmt;

use super::dealt::{PartPass, PartPassOf};
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::facts::Facts;
use crate::dataset::node::{Describe, Node, Work};
use crate::dataset::plan::{Plan, PlanOf, Planning, UNPLANNED};
use crate::dataset::stage::{Stage, stage_after};
use crate::element::Name;
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::Part;

/// A transformation of a stream: makes a pass over the output from a pass `I` over the parent.
///
/// [`Flowing`] makes a stage of it.
pub trait Flow<I: DatasetIterator>: Facts {
    /// Type of a pass over the output.
    type Pass: DatasetIterator;

    /// Starts a pass at the beginning. The report counts its work for `stage`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the flow cannot work as configured.
    fn start(&self, parent: I, stage: StageId) -> Result<Self::Pass>;

    /// Starts a pass over the rows of a part of every batch, for a flow that passes batches on unchanged.
    ///
    /// Returns `None` for any other flow.
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

    /// Starts a pass as [`start`](Self::start), and notes the keys of the output if `run` records keys.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[doc(hidden)]
    fn start_noted(&self, parent: I, stage: StageId, run: &Runtime) -> Result<Self::Pass> {
        let _ = run;
        self.start(parent, stage)
    }

    /// Returns true if the flow itself makes batches. [`start_batches`](Self::start_batches) then starts its passes.
    #[doc(hidden)]
    fn makes_batches(&self) -> bool {
        false
    }

    /// Starts a pass over the rows of `part` from a plan of the parent, for a flow that itself makes batches.
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

    /// Returns the arrays of the parent's elements whose lengths the plan requires. `behind` are the arrays that later
    /// stages require.
    #[doc(hidden)]
    fn asks(&self, behind: &[Name]) -> Vec<Name> {
        behind.to_vec()
    }

    /// Plans the output from a plan of the parent, for a flow whose decisions depend on keys alone.
    ///
    /// `planning` names the arrays whose lengths later stages require. Returns `None` for any other flow;
    /// [`unplanned`](Self::unplanned) then contains the reason.
    ///
    /// A flow that only drops or reorders elements, or passes them on unchanged, runs its own pass over stand-ins:
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

    /// Returns the reason for a missing plan, and the remedy. The name of the stage precedes it: `filter (stage 4) …`.
    #[doc(hidden)]
    fn unplanned(&self) -> &'static str {
        UNPLANNED
    }
}

/// Plans a flow that passes elements on regardless of their content: its pass runs over stand-ins. With `batches`, the
/// flow also passes batches on unchanged, so its pass also runs over the rows of a part.
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

/// Plan that the flow `F` makes from the plan of a parent with passes `I`.
pub type PlanBy<I, F> =
    Plan<<<F as Flow<I>>::Pass as DatasetIterator>::Item, <<F as Flow<I>>::Pass as DatasetIterator>::State>;

/// Pass over a part that the flow `F` starts after a pass `I`.
pub type PartPassBy<I, F> =
    PartPass<<<F as Flow<I>>::Pass as DatasetIterator>::Item, <<F as Flow<I>>::Pass as DatasetIterator>::State>;

/// The stream `D` after the flow `F`: `limit`, `window_shuffle` and all other stages with a single parent.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Flowing<D, F> {
    parent: D,
    flow: F,
    stage: StageId,
}

impl<D: Stage, F: Facts> Flowing<D, F> {
    /// Adds a stage after `parent`. The closure makes its flow from the parent.
    pub fn new(parent: D, flow: impl FnOnce(&D) -> F) -> Self {
        Self { stage: stage_after(&[&parent]), flow: flow(&parent), parent }
    }
}

impl<D: Stage, F: Facts> Stage for Flowing<D, F> {
    fn node(&self) -> Node<'_> {
        let Self { flow, .. } = self;
        let work = if flow.is_each() { Work::Chunks } else { Work::AsNeighbours };
        let (is_native, memory) = (flow.is_native(), flow.memory());
        Node { describe: self, work, is_native, memory, ..Node::new(flow.name(), flow.role()) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, F: Facts> Describe for Flowing<D, F> {
    fn params(&self) -> String {
        self.flow.params()
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
            let why = "needs all rows of its batches";
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
