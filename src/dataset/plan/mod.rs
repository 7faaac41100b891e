//! Plans: the member elements of each row, computed from keys, so that rows of other hosts are never evaluated.
//!
//! A *key* records whether an element is kept, and its lengths. Stages after the border decide by keys alone. A plan is
//! a pass of these stages over *stand-ins*: elements of the right length without payload. Each planned row lists its
//! member elements. A separate maker makes the requested rows and evaluates no other elements.
//!
//! Each stage therefore has a single implementation, which does not distinguish a plan from a pass. Packing is the
//! exception: for stand-ins it skips writing cells. It reads stand-ins as rows, as it reads sequences from columns. It
//! yields many planned rows at a time, as columns of numbers. Stand-ins then need no separate memory.

mod again;
mod branches;
mod keyed;
mod keys;
mod late_keys;
mod late_noted;
mod late_notes;
mod late_pieces;
mod leaf;
mod noted;
mod own;
mod own_pieces;
mod pieces;
mod records;
mod rows;
mod sources;
mod stale;
mod stand_in;
mod visit;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

pub(crate) use again::Again;
pub(in crate::dataset) use branches::Branches;
pub(in crate::dataset) use keyed::{Keyed, KeyedPieces};
pub(in crate::dataset) use keys::PrefixKeys;
pub(in crate::dataset) use late_keys::{ByKey, LateKeys};
pub(in crate::dataset) use late_noted::{Counted, LateNoted};
pub(in crate::dataset) use late_notes::LateNotes;
pub(in crate::dataset) use late_pieces::plan_pieces;
pub(crate) use leaf::Leaf;
#[cfg(feature = "python")]
pub(crate) use leaf::Turn;
pub(in crate::dataset) use noted::Noted;
pub(in crate::dataset) use own::Own;
pub(in crate::dataset) use own_pieces::OwnPieces;
pub(crate) use rows::PlannedRows;
pub use stand_in::StandIn;
pub(crate) use stand_in::zeros;
pub(crate) use stand_in::{Content, Member, Recipe};
#[cfg(feature = "python")]
pub(crate) use visit::read_also;
pub(in crate::dataset) use visit::{Visit, cells_of};

use self::visit::texts;
use super::iter::DatasetIterator;
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::stage::{Role, Stage};
use crate::dataset::{IterDataset, MapDataset};
use crate::element::Name;
use crate::error::{Error, Result};
use crate::exec::{Failed, Runtime};

/// The plan of a stream of `T` whose passes have state `S`.
pub struct Plan<T, S> {
    /// The pass over stand-ins.
    pub(crate) pass: PlanPass<S>,
    /// The maker of the planned elements or rows.
    pub(crate) make: Box<dyn Make<T>>,
    /// True if each stand-in is a single element and the requested lengths are known.
    pub(crate) single: bool,
    /// The borders, each with the later stages that see single elements. Empty for rows of several elements, and if the
    /// records are a stream.
    pub(crate) leaves: Vec<Leaf<T>>,
}

/// A pass over stand-ins. Its states are states of the pass over the elements.
pub type PlanPass<S> = Box<dyn DatasetIterator<Item = StandIn, State = S>>;

/// The plan of the stream `D`.
pub type PlanOf<D> = Plan<<D as IterDataset>::Item, <<D as IterDataset>::Iter as DatasetIterator>::State>;

/// Makes planned elements or rows, in the expected order.
pub(crate) trait Make<T>: Send {
    /// Announces a recipe that [`make`](Self::make) will receive, so that its elements are evaluated ahead.
    fn expect(&mut self, recipe: &[Member]);

    /// Makes the element or row of `recipe`. `failed` is the policy for failed elements.
    ///
    /// If the policy is padding, a failed member of a row becomes padding in the row. Returns `None` for a single
    /// element that failed.
    ///
    /// # Errors
    /// Errors of the evaluation, and [`ErrorKind::Data`](crate::ErrorKind::Data) if an element does not match its key.
    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<T>>;

    /// Makes an element or row from indices near a failed `recipe`, as a sample for padding. Returns `None` if
    /// all of them fail.
    ///
    /// # Errors
    /// Errors of the evaluation other than bad data.
    fn sample(&mut self, recipe: &[Member]) -> Result<Option<T>> {
        let _ = recipe;
        Ok(None)
    }

    /// Appends the lengths of an element's requested arrays to `lens`, according to its key.
    ///
    /// # Errors
    /// Errors of the key lookup, and [`ErrorKind::State`](crate::ErrorKind::State) if the maker has no keys.
    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        let _ = (id, lens);
        Err(Error::state("a plan does not contain the lengths of its elements"))
    }

    /// Finds the first array whose name `is_it` accepts. Returns `None` unless keys determine the segments of this
    /// array.
    fn find_segments(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Option<Segments> {
        let _ = is_it;
        None
    }

    /// Returns the lengths of the segments of `recipe` in the array `of`, in order.
    ///
    /// # Errors
    /// Errors of [`lens`](Self::lens).
    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        let _ = (recipe, of);
        Err(Error::state("a plan does not contain the segments of its rows"))
    }

    /// Discards the expected recipes, because the plan moves to another position.
    fn forget(&mut self) -> Result<()>;
}

/// The default reason for a stage without a plan.
pub(crate) const UNPLANNED: &str = "cannot plan its rows, so it needs the elements themselves";
/// The reason for the source of a stream.
const IN_ORDER: &str = "is read in order, and keys describe records with random access";

/// An array of segment ids in planned rows.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// The name of the array.
    pub(crate) name: String,
    /// The number of its feature.
    pub(crate) feature: usize,
    /// True if the array has the segment ids of targets. Each segment is then one cell shorter.
    pub(crate) of_targets: bool,
}

/// The context in which a plan starts.
pub struct Planning<'a> {
    /// The runtime that evaluates elements.
    pub(crate) run: Runtime,
    /// The arrays whose lengths later stages request.
    pub(crate) names: &'a [Name],
    leaves: &'a Cell<u32>,
}

impl Planning<'_> {
    /// Starts a plan of `dataset` with the lengths of the arrays `names`. Returns `None` if there are no keys, or
    /// if a stage decides by payload.
    pub(crate) fn plan<D: IterDataset>(dataset: &D, names: &[Name], run: &Runtime) -> Result<Option<PlanOf<D>>> {
        Self::start(run, names, |planning| planning.of(dataset))
    }

    /// Calls `plan` with the context of a new plan.
    pub(in crate::dataset) fn start<R>(run: &Runtime, names: &[Name], plan: impl FnOnce(&Planning<'_>) -> R) -> R {
        let leaves = Cell::new(0);
        plan(&Planning { run: run.clone(), names, leaves: &leaves })
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
        Planning { run: self.run.clone(), names, leaves: self.leaves }
    }

    /// Returns a context for a parent whose stage ids are higher by `stages`.
    pub(crate) fn offset(&self, stages: usize) -> Planning<'_> {
        Planning { run: self.run.offset(stages), names: self.names, leaves: self.leaves }
    }

    /// Finds the keys of a prefix, with the requested lengths. Returns `None` if there are none. Returns `None` in a
    /// worker process, whose tasks list the elements to evaluate.
    pub(in crate::dataset) fn keys<D>(&self, prefix: &Arc<D>, visit: Visit<D::Item>) -> Result<Option<Arc<PrefixKeys>>>
    where
        D: MapDataset + 'static,
    {
        if self.run.is_serving() {
            return Ok(None);
        }
        PrefixKeys::find(prefix, self.names, visit, &self.run)
    }

    /// Makes the pass over the border `stage` note the keys of the elements that it evaluates, if keys are recorded.
    /// Returns the list to which later stages add their keys; `None` if keys are not recorded.
    pub(in crate::dataset) fn record<T: 'static>(
        &self,
        stage: StageId,
        keys: &Arc<PrefixKeys>,
        visit: Visit<T>,
    ) -> Option<Arc<LateNotes>> {
        let mut late: Option<Arc<LateNotes>> = None;
        self.run.have_noted(stage, || {
            let notes = late.insert(Arc::default());
            let (leaf, names) = (self.next_leaf(), texts(self.names));
            Arc::new(Noted { leaf, keys: keys.clone(), names, visit, late: notes.clone() })
        });
        late
    }

    /// Makes the pass over `stage`, which is after the border, note these keys, if keys are recorded.
    pub(in crate::dataset) fn record_late(&self, stage: StageId, keys: &Arc<LateKeys>) {
        self.run.have_noted(stage, || Arc::new(LateNoted(keys.clone())));
    }

    /// Returns the number of the next border.
    pub(crate) fn next_leaf(&self) -> u32 {
        self.leaves.get()
    }

    /// Returns the number of the next border and increments it.
    pub(in crate::dataset) fn take_leaf(&self) -> u32 {
        self.leaves.replace(self.leaves.get() + 1)
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
        let leaves = self.leaves.into_iter().map(|leaf| leaf.turned(convert, turn)).collect();
        Plan { pass: self.pass, make: Box::new(make(self.make)), single: self.single, leaves }
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
        let leaves = self.leaves.into_iter().map(Leaf::unnoted).collect();
        Plan { leaves, ..self }.handing_on(start)
    }

    /// Like [`through`](Self::through), for a stage that reports by [`Cx::member`] which element it yields.
    pub(crate) fn handing_on<P>(self, start: impl FnOnce(PlanPass<S>) -> Result<P>) -> Result<Option<Plan<T, P::State>>>
    where
        P: DatasetIterator<Item = StandIn> + 'static,
    {
        let Self { pass, make, single, leaves } = self;
        Ok(Some(Plan { pass: Box::new(start(pass)?), make, single, leaves }))
    }
}

impl<T, S> fmt::Debug for Plan<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("single", &self.single).finish_non_exhaustive()
    }
}

impl fmt::Debug for Planning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planning").field("names", &self.names).finish_non_exhaustive()
    }
}
