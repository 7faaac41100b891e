//! Stages of streams with a single parent. Each is a [`Flow`]; [`Flowing`] implements the stage for all of them.

use std::fmt;

use super::dealt::{PartPass, PartPassOf};
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::facts::Facts;
use crate::dataset::node::{Describe, Node, Work};
use crate::dataset::plan::{Plan, PlanOf, Planning, UNPLANNED};
use crate::dataset::run::opaque::debug_name;
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

    /// Starts a pass at the beginning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the flow cannot work as configured.
    fn start(&self, parent: I, at: Start<'_>) -> Result<Self::Pass>;

    /// Starts the flow for hosts that evaluate only their own rows. Returns `None` if the flow cannot.
    ///
    /// - After a pass over the rows of a part, returns such a pass, if the flow passes batches on unchanged.
    /// - After a plan, returns a plan, if the decisions of the flow depend on keys alone. `at.planning` names the arrays
    ///   whose lengths later stages require. Without a plan, [`unplanned`](Self::unplanned) contains the reason.
    /// - After a plan, a flow that itself makes batches returns a pass over the rows of `at.part`.
    ///
    /// A flow that only drops or reorders elements, or passes them on unchanged, runs its own pass over stand-ins:
    /// `Ok(plan.through(|pass| self.start(pass, at))?.map(Parted::Plan))`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    fn start_part(&self, _parent: Parted<I::Item, I::State>, _at: Start<'_>) -> Result<Option<PartedBy<I, Self>>>
    where
        Self: Sized + 'static,
        I::Item: Send + 'static,
        <Self::Pass as DatasetIterator>::Item: Send + 'static,
    {
        Ok(None)
    }

    /// Returns true if the flow itself makes batches.
    #[doc(hidden)]
    fn makes_batches(&self) -> bool {
        false
    }

    /// Returns the arrays of the parent's elements whose lengths the plan requires. `behind` are the arrays that later
    /// stages require.
    #[doc(hidden)]
    fn asks(&self, behind: &[Name]) -> Vec<Name> {
        behind.to_vec()
    }

    /// Returns the reason for a missing plan, and the remedy. The name of the stage precedes it: `filter (stage 4) …`.
    #[doc(hidden)]
    fn unplanned(&self) -> &'static str {
        UNPLANNED
    }
}

/// The context in which a flow starts.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Stage to which the report attributes the work.
    pub stage: StageId,
    /// Runtime that evaluates elements.
    pub run: &'a Runtime,
    /// Context of the plan, if the flow is planned.
    pub planning: Option<&'a Planning<'a>>,
    /// Part whose rows are evaluated, if the flow makes batches.
    pub part: Option<&'a Part>,
}

/// A stream of which a host evaluates only its own rows.
pub enum Parted<T, S> {
    /// A pass over the rows of a part of every batch.
    Rows(PartPass<T, S>),
    /// A plan of the elements of all rows.
    Plan(Plan<T, S>),
}

impl<T, S> Parted<T, S> {
    fn rows(self) -> Option<PartPass<T, S>> {
        if let Self::Rows(pass) = self { Some(pass) } else { None }
    }

    fn plan(self) -> Option<Plan<T, S>> {
        if let Self::Plan(plan) = self { Some(plan) } else { None }
    }
}

debug_name!(Parted<T, S>);

/// The [`Parted`] output of the flow `F` after a pass `I`.
pub type PartedBy<I, F> =
    Parted<<<F as Flow<I>>::Pass as DatasetIterator>::Item, <<F as Flow<I>>::Pass as DatasetIterator>::State>;

/// Plans a flow that passes elements on regardless of their content: its pass runs over stand-ins. With `batches`, the
/// flow also passes batches on unchanged, so its pass also runs over the rows of a part.
macro_rules! hands_on {
    (elements) => {
        hands_on!(false);
    };
    (elements, batches) => {
        hands_on!(true);
    };
    ($batches:literal) => {
        fn start_part(
            &self,
            parent: $crate::dataset::iter::Parted<I::Item, I::State>,
            at: Start<'_>,
        ) -> Result<Option<$crate::dataset::iter::PartedBy<I, Self>>>
        where
            I::Item: Send + 'static,
        {
            use $crate::dataset::iter::Parted;
            match parent {
                Parted::Plan(plan) => Ok(plan.pass_on(|pass| Flow::start(self, pass, at))?.map(Parted::Plan)),
                Parted::Rows(pass) if $batches => Ok(Some(Parted::Rows(Box::new(Flow::start(self, pass, at)?)))),
                Parted::Rows(_) => Ok(None),
            }
        }
    };
}
pub(super) use hands_on;

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

    fn at<'a>(&self, run: &'a Runtime) -> Start<'a> {
        Start { stage: self.stage, run, planning: None, part: None }
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
            return self.flow.start(parent, self.at(&run.on_one_thread()));
        }
        self.flow.start(parent, self.at(run))
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        if self.flow.makes_batches() {
            let Some(plan) = Planning::plan(&self.parent, &self.flow.asks(&[]), run)? else { return Ok(None) };
            let at = Start { part: Some(part), ..self.at(run) };
            return Ok(self.flow.start_part(Parted::Plan(plan), at)?.and_then(Parted::rows));
        }
        let Some(parent) = self.parent.iter_part(run, part)? else { return Ok(None) };
        let pass = self.flow.start_part(Parted::Rows(parent), self.at(run))?.and_then(Parted::rows);
        if pass.is_none() {
            let why = "needs all rows of its batches";
            run.note_unplanned(self.stage.0 as usize, |id| format!("{} (stage {id}) {why}", self.flow.name()));
        }
        Ok(pass)
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let asked = self.flow.asks(planning.names);
        let Some(parent) = planning.asking(&asked).of(&self.parent)? else { return Ok(None) };
        let at = Start { planning: Some(planning), ..self.at(&planning.run) };
        let plan = self.flow.start_part(Parted::Plan(parent), at)?.and_then(Parted::plan);
        if plan.is_none() {
            planning.refuse(self, self.flow.unplanned());
        }
        Ok(plan)
    }
}

debug_as!(<D: fmt::Debug, F: Facts> Flowing<D, F>, |self, f| {
    f.debug_struct(self.flow.name()).field("parent", &self.parent).finish_non_exhaustive()
});
