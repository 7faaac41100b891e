//! Plans: which elements a row is made of, found out of keys, so that of the rows of others none is made.
//!
//! A *key* of an element is whether it is kept and how long it is. Stages behind the border decide by no more than that: a plan is a pass
//! of the same stages over *stand-ins*, elements of the right length without payload. What comes out at the end
//! says which elements it stands for, and a maker beside it makes the rows that are wanted of those: it evaluates no others.
//!
//! So a stage has one logic: it cannot tell a plan from a pass. Packing alone looks, to leave out writing cells. It takes stand-ins in as rows, as it takes
//! sequences out of columns, and gives planned rows many at a time, as columns of numbers: no stand-in has memory of its own then.

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
pub(in crate::dataset) use stand_in::stand_in;
pub(crate) use stand_in::{Member, Recipe, is_stand_in, recipe, stand_in_of, tag_of};
pub(in crate::dataset) use visit::Visit;
#[cfg(feature = "python")]
pub(crate) use visit::read_also;

use self::visit::texts;
use super::iter::DatasetIterator;
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage};
use crate::dataset::{IterDataset, MapDataset};
use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::exec::{Failed, Runtime};

/// A plan of a stream of `T`, whose passes have states `S`.
pub struct Plan<T, S> {
    /// The pass of the same stages over stand-ins.
    pub(crate) pass: PlanPass<S>,
    /// The maker of what they stand for.
    pub(crate) make: Box<dyn Make<T>>,
    /// Whether each stands for one element, of which the lengths are known that were asked for.
    pub(crate) single: bool,
    /// What records become on their way here, each by itself; none where rows are made of several, or they are of a stream.
    pub(crate) leaves: Vec<Leaf<T>>,
}

/// A pass over stand-ins, with the states of the pass over what they stand for.
pub type PlanPass<S> = Box<dyn DatasetIterator<Item = Element, State = S>>;

/// The plan of the stream `D`.
pub type PlanOf<D> = Plan<<D as IterDataset>::Item, <<D as IterDataset>::Iter as DatasetIterator>::State>;

/// Makes what was planned, in the order in which it is expected.
pub(crate) trait Make<T>: Send {
    /// Says that this will be asked for, so that it is evaluated ahead.
    fn expect(&mut self, recipe: &[Member]);

    /// Makes it. What becomes of elements that fail, `failed` says: where it is made of several, they are padding in it; `None`, if it is made
    /// of the one that has failed.
    ///
    /// # Errors
    /// Those of evaluating its elements; and [`ErrorKind::Data`](crate::ErrorKind::Data) where one is not as its key says.
    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<T>>;

    /// Makes another one of the kind, out of elements near those of a `recipe` that failed, to learn from what it is like; `None` where all of
    /// those fail, too.
    ///
    /// # Errors
    /// Those of evaluating elements that are not of the data.
    fn sample(&mut self, recipe: &[Member]) -> Result<Option<T>> {
        let _ = recipe;
        Ok(None)
    }

    /// Puts the lengths that an element has by its key behind `lens`, those of the arrays that were asked for.
    ///
    /// # Errors
    /// Those of looking keys up, and [`ErrorKind::State`](crate::ErrorKind::State) where nothing knows them.
    fn lens(&self, member: &Member, lens: &mut Vec<u32>) -> Result<()> {
        let _ = (member, lens);
        Err(Error::state("a plan does not know how long its elements are"))
    }

    /// Finds the first array with a name that `is_it`, if keys say of what segments it will be.
    fn find_segments(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Option<Segments> {
        let _ = is_it;
        None
    }

    /// The lengths of the segments that what is planned will have in an array that was found, in order.
    ///
    /// # Errors
    /// As [`lens`](Self::lens).
    fn segments(&self, recipe: &[Member], of: &Segments) -> Result<Vec<u64>> {
        let _ = (recipe, of);
        Err(Error::state("a plan does not know the segments of its rows"))
    }

    /// Expects nothing any more: the plan goes on somewhere else.
    fn forget(&mut self) -> Result<()>;
}

/// The reason of a stage that has no plan and gives no reason of its own.
pub(crate) const UNPLANNED: &str = "does not say how it plans, so that it needs the elements themselves";
/// The reason of a source of a stream.
const IN_ORDER: &str = "is read in order, and keys are of records with random access";

/// An array of segment ids in planned rows.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    /// Its name.
    pub(crate) name: String,
    /// The number of the feature that it is of.
    pub(crate) feature: usize,
    /// Whether it has the ids of targets: each segment is a cell shorter.
    pub(crate) of_targets: bool,
}

/// What a plan is started with.
pub struct Planning<'a> {
    /// Who evaluates elements.
    pub(crate) run: Runtime,
    /// The arrays whose lengths the stages behind want to know.
    pub(crate) names: &'a [Name],
    leaves: &'a Cell<u32>,
}

impl Planning<'_> {
    /// Starts a plan of `dataset`, of whose elements the lengths of the arrays `names` are asked; `None` where there are no keys, or a stage
    /// decides by payload.
    pub(crate) fn plan<D: IterDataset>(dataset: &D, names: &[Name], run: &Runtime) -> Result<Option<PlanOf<D>>> {
        Self::start(run, names, |planning| planning.of(dataset))
    }

    /// The same of what `plan` plans.
    pub(in crate::dataset) fn start<R>(run: &Runtime, names: &[Name], plan: impl FnOnce(&Planning<'_>) -> R) -> R {
        let leaves = Cell::new(0);
        plan(&Planning { run: run.clone(), names, leaves: &leaves })
    }

    /// Plans a parent: what a stage with a plan of its own asks first. Where there is none, that is noted of the first stage that has none.
    ///
    /// # Errors
    /// Those of its [`plan`](IterDataset::plan).
    pub fn of<D: IterDataset>(&self, dataset: &D) -> Result<Option<PlanOf<D>>> {
        let plan = dataset.plan(self)?;
        if plan.is_none() {
            let is_source = dataset.role() == Role::Source;
            self.refuse(dataset, if is_source { IN_ORDER } else { UNPLANNED });
        }
        Ok(plan)
    }

    /// Notes why `stage` has no plan, unless that was noted of one before it.
    pub(crate) fn refuse(&self, stage: &dyn Stage, why: &str) {
        self.run.note_unplanned(stage.count() - 1, |id| format!("{} (stage {id}) {why}", stage.name()));
    }

    /// The same for a parent that is asked for the lengths of other arrays.
    pub(crate) fn asking<'a>(&'a self, names: &'a [Name]) -> Planning<'a> {
        Planning { run: self.run.clone(), names, leaves: self.leaves }
    }

    /// The same for a parent whose stage ids start `stages` higher.
    pub(crate) fn offset(&self, stages: usize) -> Planning<'_> {
        Planning { run: self.run.offset(stages), names: self.names, leaves: self.leaves }
    }

    /// The keys of a prefix, with the lengths that are asked for; `None` where there are none, and in a worker, which is told what to evaluate.
    pub(in crate::dataset) fn keys<D>(&self, prefix: &Arc<D>, visit: Visit<D::Item>) -> Result<Option<Arc<PrefixKeys>>>
    where
        D: MapDataset + 'static,
    {
        if self.run.is_serving() {
            return Ok(None);
        }
        PrefixKeys::find(prefix, self.names, visit, &self.run)
    }

    /// Has the pass over the border `stage` note the keys of what it evaluates, where keys are recorded; and where those of stages behind it are noted then.
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

    /// Has the pass over `stage`, behind borders, note these keys of it, where keys are recorded.
    pub(in crate::dataset) fn record_late(&self, stage: StageId, keys: &Arc<LateKeys>) {
        self.run.have_noted(stage, || Arc::new(LateNoted(keys.clone())));
    }

    /// The number of the next border.
    pub(crate) fn next_leaf(&self) -> u32 {
        self.leaves.get()
    }

    /// Takes the number of the next border.
    pub(in crate::dataset) fn take_leaf(&self) -> u32 {
        self.leaves.replace(self.leaves.get() + 1)
    }
}

impl<T, S> Plan<T, S> {
    /// The same, made into something else by what `make` makes of the maker, as `turn` makes it of records by `convert`.
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

    /// The same with another pass over the same stand-ins: that of a stage that changes their number or order, and none of them.
    ///
    /// # Errors
    /// Errors of `start`.
    pub fn through<P>(self, start: impl FnOnce(PlanPass<S>) -> Result<P>) -> Result<Option<Plan<T, P::State>>>
    where
        P: DatasetIterator<Item = Element> + 'static,
        T: 'static,
    {
        let leaves = self.leaves.into_iter().map(Leaf::unnoted).collect();
        Plan { leaves, ..self }.handing_on(start)
    }

    /// The same for a stage that says by [`Cx::member`] which element it hands on.
    pub(crate) fn handing_on<P>(self, start: impl FnOnce(PlanPass<S>) -> Result<P>) -> Result<Option<Plan<T, P::State>>>
    where
        P: DatasetIterator<Item = Element> + 'static,
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
