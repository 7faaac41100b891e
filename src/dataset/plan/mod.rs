//! Plans: the elements of each row, computed from keys, so that rows of other hosts are never evaluated.
//!
//! A *key* records whether an element is kept, and its lengths. Stages after the border decide by keys alone. A plan is
//! a pass of these stages over *stand-ins*, which have an identity and lengths, but no payload. Each planned row lists its
//! members: elements, or parts of elements. A separate maker makes the requested rows and evaluates no other elements.
//!
//! Each stage therefore has a single implementation, for plans and passes alike. The README of the folder explains the
//! parts.

mod batches;
mod border_makers;
mod branches;
mod census;
mod chain;
mod deal;
mod keyed;
mod make;
mod measure;
mod planned_pass;
mod prefix_keys;
mod recorder;
mod records;
mod reuse;
mod rows;
mod seen;
mod stage_keys;
mod stage_makers;
mod stand_in;

use std::cell::Cell;
use std::sync::Arc;

pub(crate) use batches::{PlanBatches, PlannedOwn, pass_over_plan};
pub(in crate::dataset) use border_makers::{Border, ElementMaker, PieceMaker};
pub(in crate::dataset) use branches::Branches;
use census::Census;
pub(crate) use census::RunContents;
pub(crate) use chain::Chain;
#[cfg(feature = "python")]
pub(crate) use chain::Turn;
pub(in crate::dataset) use keyed::Keyed;
pub(crate) use make::{Make, Part, Segments, Span};
#[cfg(feature = "python")]
pub(crate) use measure::read_also;
pub(in crate::dataset) use measure::{Measure, cells_of};
pub use planned_pass::PlannedBatch;
pub(crate) use planned_pass::PlannedPass;
pub(in crate::dataset) use prefix_keys::PrefixKeys;
pub(in crate::dataset) use recorder::{BorderRecorder, ChainRecorder, Counted, StageRecorder};
pub(crate) use reuse::Reuse;
pub(crate) use rows::{Member, PlannedRows, Recipe};
pub(in crate::dataset) use stage_makers::{plan_each, plan_fan_out};
pub use stand_in::StandIn;
pub(crate) use stand_in::{Content, zeros};

use self::measure::texts;
use super::iter::DatasetIterator;
use crate::cx::StageId;
use crate::dataset::stage::{Role, Stage};
use crate::dataset::{IterDataset, MapDataset};
use crate::element::Name;
use crate::error::Result;
use crate::exec::Runtime;

/// The plan of a stream of `T` whose passes have state `S`.
pub struct Plan<T, S> {
    /// The pass over stand-ins.
    pub(crate) pass: PlanPass<S>,
    /// The maker of the planned elements or rows.
    pub(crate) make: Box<dyn Make<T>>,
    /// True if each stand-in represents a single element, with the requested lengths.
    pub(crate) single: bool,
    /// The chain of each border, up to this stage. Empty for rows of several elements, and if the records are a stream.
    pub(crate) chains: Vec<Chain<T>>,
}

/// A pass over stand-ins. Its states are states of the pass over the elements.
pub type PlanPass<S> = Box<dyn DatasetIterator<Item = StandIn, State = S>>;

/// The plan of a stream whose passes are `I`.
pub type PlanBy<I> = Plan<<I as DatasetIterator>::Item, <I as DatasetIterator>::State>;

/// The plan of the stream `D`.
pub type PlanOf<D> = PlanBy<<D as IterDataset>::Iter>;

/// The default reason for a stage without a plan.
pub(crate) const UNPLANNED: &str = "cannot plan its rows, so it needs the elements themselves";
/// The reason for the source of a stream.
const IN_ORDER: &str = "is read in order, and keys describe records with random access";

/// The context in which a plan starts.
pub struct Planning<'a> {
    /// The runtime that evaluates elements.
    pub(crate) run: Runtime,
    /// The arrays whose lengths later stages request.
    pub(crate) names: &'a [Name],
    /// The number of the next border.
    border: &'a Cell<u32>,
}

impl Planning<'_> {
    /// Starts a plan of `dataset` with the lengths of the arrays `names`. Returns `None` if there are no keys, or
    /// if a stage decides by payload.
    pub(crate) fn plan<D: IterDataset>(dataset: &D, names: &[Name], run: &Runtime) -> Result<Option<PlanOf<D>>> {
        Self::start(run, names, |planning| planning.of(dataset))
    }

    /// Calls `plan` with the context of a new plan.
    pub(in crate::dataset) fn start<R>(run: &Runtime, names: &[Name], plan: impl FnOnce(&Planning<'_>) -> R) -> R {
        plan(&Planning { run: run.clone(), names, border: &Cell::new(0) })
    }

    /// Plans the parent of a stage. If the parent has no plan, notes the reason for the earliest stage without a plan.
    ///
    /// # Errors
    /// Errors of [`IterDataset::plan`].
    pub fn of<D: IterDataset>(&self, dataset: &D) -> Result<Option<PlanOf<D>>> {
        let plan = dataset.plan(self)?;
        if plan.is_none() {
            let is_source = dataset.node().role == Role::Source;
            self.refuse(dataset, if is_source { IN_ORDER } else { UNPLANNED });
        }
        Ok(plan)
    }

    /// Notes why `stage` has no plan. Only the first reason is kept.
    pub(crate) fn refuse(&self, stage: &dyn Stage, why: &str) {
        self.run.note_unplanned(stage.count() - 1, |id| format!("{} (stage {id}) {why}", stage.name()));
    }

    /// Returns a context that requests the lengths of the arrays `names` instead.
    pub(crate) fn asking<'a>(&'a self, names: &'a [Name]) -> Planning<'a> {
        Planning { run: self.run.clone(), names, border: self.border }
    }

    /// Returns a context for a parent whose stage ids are higher by `stages`.
    pub(crate) fn offset(&self, stages: usize) -> Planning<'_> {
        Planning { run: self.run.offset(stages), names: self.names, border: self.border }
    }

    /// Finds the keys of a prefix, with the requested lengths. Returns `None` if there are none. Returns `None` in a
    /// worker process, whose tasks list the elements to evaluate.
    pub(in crate::dataset) fn keys<D>(
        &self,
        prefix: &Arc<D>,
        measure: Measure<D::Item>,
    ) -> Result<Option<Arc<PrefixKeys>>>
    where
        D: MapDataset + 'static,
    {
        if self.run.is_serving() {
            return Ok(None);
        }
        PrefixKeys::find(prefix, self.names, measure, &self.run)
    }

    /// Makes the pass over the border `stage` record the keys of the elements that it evaluates, if keys are recorded.
    /// Returns the recorder of the stages after the border; `None` if keys are not recorded.
    pub(in crate::dataset) fn record<T: 'static>(
        &self,
        stage: StageId,
        keys: &Arc<PrefixKeys>,
        measure: Measure<T>,
    ) -> Option<Arc<ChainRecorder>> {
        let mut chain: Option<Arc<ChainRecorder>> = None;
        self.run.add_key_recorder(stage, || {
            let chain = chain.insert(Arc::default()).clone();
            let (border, names) = (self.next_border(), texts(self.names));
            Arc::new(BorderRecorder { border, keys: keys.clone(), names, measure, chain })
        });
        chain
    }

    /// Returns the number of the next border.
    pub(crate) fn next_border(&self) -> u32 {
        self.border.get()
    }

    /// Returns the number of the next border and increments it.
    pub(in crate::dataset) fn take_border(&self) -> u32 {
        self.border.replace(self.next_border() + 1)
    }
}

impl<T, S> Plan<T, S> {
    /// Returns a plan of `U`. `make` converts the maker, and `turn` applies `convert` to records.
    #[cfg(feature = "python")]
    pub(crate) fn making<U, M: Make<U> + 'static>(
        self,
        make: impl FnOnce(Box<dyn Make<T>>) -> M,
        convert: impl Fn(T) -> Result<U> + Copy + Send + Sync + 'static,
        turn: &impl Turn,
    ) -> Plan<U, S>
    where
        T: Send + 'static,
        U: 'static,
    {
        let chains = self.chains.into_iter().map(|chain| chain.turned(convert, turn)).collect();
        Plan { pass: self.pass, make: Box::new(make(self.make)), single: self.single, chains }
    }

    /// Returns the plan of a stage that changes only the number or order of elements. `start` starts its pass over the
    /// stand-ins.
    ///
    /// # Errors
    /// Errors of `start`.
    pub fn through<P>(self, start: impl FnOnce(PlanPass<S>) -> Result<P>) -> Result<Option<Plan<T, P::State>>>
    where
        P: DatasetIterator<Item = StandIn> + 'static,
        T: 'static,
    {
        let chains = self.chains.into_iter().map(Chain::unrecorded).collect();
        Plan { chains, ..self }.pass_on(start)
    }

    /// Like [`through`](Self::through), for a stage that reports by [`Cx::element`](crate::cx::Cx::element) which element it yields.
    pub(crate) fn pass_on<P>(self, start: impl FnOnce(PlanPass<S>) -> Result<P>) -> Result<Option<Plan<T, P::State>>>
    where
        P: DatasetIterator<Item = StandIn> + 'static,
    {
        let Self { pass, make, single, chains } = self;
        Ok(Some(Plan { pass: Box::new(start(pass)?), make, single, chains }))
    }
}

debug_as!(<T, S> Plan<T, S>, |self, f| f.debug_struct("Plan").field("single", &self.single).finish_non_exhaustive());

debug_as!(Planning<'_>, |self, f| f.debug_struct("Planning").field("names", &self.names).finish_non_exhaustive());
