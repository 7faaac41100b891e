//! Stages of streams that see each element alone: [`InOrder`] applies an [`Each`], and [`Keep`] holds further state.

use std::convert::Infallible;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chunked::{Chunked, Work};
use super::dealt::left_out;
use super::flow::{Flow, Flowing, Parted, PartedBy, Start};
use super::{CounterState, DatasetIterator, FilterState};
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::map::{Each, apply};
use crate::dataset::memory::Memory;
use crate::dataset::plan::{ByKey, LateKeys, LateNoted, Make, Member, Plan, PlanPass};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::thresholds::Watch;
use crate::dataset::stage::Role;
use crate::element::{Name, Part, Slot};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Failed;

/// A position of a pass: see [`DatasetIterator::State`].
#[doc(hidden)]
pub trait Position: Clone + Send + Sync + Serialize + DeserializeOwned + 'static {}

impl<S: Clone + Send + Sync + Serialize + DeserializeOwned + 'static> Position for S {}

/// The stage's own part of a pass's position: nothing, a [`Counter`] of elements, or the [`Watch`] of a filter.
#[doc(hidden)]
pub trait Keep: Clone + Send + Sync + 'static {
    /// Position of a pass whose parent has the position `S`.
    type State<S: Position>: Position;

    /// Returns further arguments of the stage.
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the role of a stage whose function alone has `role`.
    fn role(role: Role) -> Role {
        role
    }

    /// Returns the memory that a stage declares.
    fn memory() -> Option<Memory> {
        None
    }

    /// Checks the arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with value and limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the index of the next element and counts the element.
    fn next_index(&mut self) -> u64 {
        0
    }

    /// Adds the index to an element's error, if elements have indices.
    fn at(error: Error, index: u64) -> Error {
        let _ = index;
        error
    }

    /// Counts an element as dropped or kept.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if too many elements are dropped.
    fn judge(&mut self, dropped: bool, cx: &mut Cx) -> Result<()> {
        let _ = (dropped, cx);
        Ok(())
    }

    /// Returns the position of the pass.
    fn state<S: Position>(&self, parent: S) -> Self::State<S>;

    /// Restores a position and returns the parent's position.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) for an impossible position.
    fn restore<S: Position>(&mut self, state: Self::State<S>) -> Result<S>;
}

impl Keep for () {
    type State<S: Position> = S;

    fn state<S: Position>(&self, parent: S) -> S {
        parent
    }
    fn restore<S: Position>(&mut self, state: S) -> Result<S> {
        Ok(state)
    }
}

/// Number of elements that have arrived.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter(u64);

impl Keep for Counter {
    type State<S: Position> = CounterState<S>;

    fn role(_: Role) -> Role {
        Role::Stateful
    }
    fn memory() -> Option<Memory> {
        Some(Memory::NOTHING)
    }
    fn next_index(&mut self) -> u64 {
        let index = self.0;
        self.0 = index.saturating_add(1);
        index
    }
    fn at(error: Error, index: u64) -> Error {
        error.index(index)
    }
    fn state<S: Position>(&self, parent: S) -> CounterState<S> {
        CounterState { parent, counter: self.0 }
    }
    fn restore<S: Position>(&mut self, state: CounterState<S>) -> Result<S> {
        self.0 = state.counter;
        Ok(state.parent)
    }
}

impl Keep for Watch {
    type State<S: Position> = FilterState<S>;

    fn params(&self) -> String {
        self.thresholds.params()
    }
    fn check(&self) -> Result<()> {
        self.thresholds.check()
    }
    fn judge(&mut self, dropped: bool, cx: &mut Cx) -> Result<()> {
        self.count(dropped, cx)
    }
    fn state<S: Position>(&self, parent: S) -> FilterState<S> {
        self.state(parent)
    }
    fn restore<S: Position>(&mut self, state: FilterState<S>) -> Result<S> {
        self.restore(state.seen, state.dropped)?;
        Ok(state.parent)
    }
}

/// A function that is applied to the elements of a stream in order.
#[doc(hidden)]
pub struct InOrder<E, K> {
    each: Arc<E>,
    keep: K,
}

/// The stream `D` after the function `E`: `map`, `filter` and all other stages that see each element alone.
pub type IterMapped<D, E, K> = Flowing<D, InOrder<E, K>>;

impl<E, K: Keep> InOrder<E, K> {
    pub(crate) fn new(each: E, keep: K) -> Self {
        Self { each: Arc::new(each), keep }
    }
}

impl<E: Facts, K: Keep> Facts for InOrder<E, K> {
    fn name(&self) -> &'static str {
        self.each.name()
    }
    fn params(&self) -> String {
        let parts = [self.each.params(), self.keep.params()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
    fn role(&self) -> Role {
        K::role(self.each.role())
    }
    fn is_native(&self) -> bool {
        self.each.is_native()
    }
    fn is_each(&self) -> bool {
        true
    }
    fn memory(&self) -> Option<Memory> {
        K::memory()
    }
    fn check(&self) -> Result<()> {
        self.each.check()?;
        self.keep.check()
    }
}

impl<I, E, K> Flow<I> for InOrder<E, K>
where
    I: DatasetIterator<Item: Send + 'static>,
    E: Each<I::Item, Out: Send + 'static> + 'static,
    K: Keep,
{
    type Pass = IterMappedIter<I, E, K>;

    fn start(&self, parent: I, Start { stage, run, .. }: Start<'_>) -> Result<Self::Pass> {
        self.each.check()?;
        let made = Chunked::new(parent, Alone(self.each.clone()), stage, run);
        Ok(IterMappedIter { noted: run.noted(stage), ..IterMappedIter::of(made, self.keep.clone(), stage) })
    }

    /// Requests no lengths from the parent: the stage's own keys contain the lengths of its output.
    fn asks(&self, _: &[Name]) -> Vec<Name> {
        Vec::new()
    }

    /// Plans a stage whose maker applies the function. Keys determine the dropped elements and the lengths of the
    /// output; they are made as if the stage were before the border.
    fn start_part(&self, parent: Parted<I::Item, I::State>, at: Start<'_>) -> Result<Option<PartedBy<I, Self>>>
    where
        Self: 'static,
        I::Item: 'static,
        E::Out: 'static,
    {
        let (Parted::Plan(parent), Start { stage, planning: Some(planning), .. }) = (parent, at) else {
            return Ok(None);
        };
        if self.each.sees_index() {
            return Ok(None);
        }
        let leaves: Vec<_> = parent.leaves.iter().map(|leaf| leaf.through(&self.each)).collect();
        let is_as_it_was = planning.names.is_empty() && self.each.role() == Role::Elementwise;
        let keys = match leaves.as_slice() {
            _ if is_as_it_was => None,
            [] => return Ok(None),
            leaves => match LateKeys::find(leaves, planning)? {
                Some(keys) => {
                    let keys = Arc::new(keys);
                    planning.record_late(stage, &keys);
                    Some(keys)
                }
                None => return Ok(None),
            },
        };
        let (keep, name) = (self.keep.clone(), self.each.name());
        let pass: PlanPass<K::State<I::State>> = match &keys {
            None => Box::new(IterMappedIter::new(parent.pass, Arc::new(AsItIs), keep, stage)),
            Some(keys) => {
                let each = Arc::new(ByKey { keys: keys.clone(), name });
                Box::new(IterMappedIter::new(parent.pass, each, keep, stage))
            }
        };
        let make = Applied { make: parent.make, each: self.each.clone(), keys, single: parent.single, stage };
        Ok(Some(Parted::Plan(Plan { pass, make: Box::new(make), single: parent.single, leaves })))
    }

    fn unplanned(&self) -> &'static str {
        match (self.each.sees_index(), self.each.role()) {
            (true, _) => "counts the elements before it, so it needs the elements themselves",
            (false, Role::Elementwise) => {
                "may change lengths that later stages depend on; keys contain such lengths only for single records, before packing"
            }
            _ => {
                "depends on the elements themselves; keys record its decisions only for single records, before packing"
            }
        }
    }
}

/// Function of a planned stage that keeps all elements: a stand-in for an element also stands for the result.
struct AsItIs;

impl Facts for AsItIs {
    fn name(&self) -> &'static str {
        "plan"
    }
}

impl<T> Each<T> for AsItIs {
    type Out = T;

    fn apply(&self, _: u64, element: T) -> Result<Option<T>> {
        Ok(Some(element))
    }
}

/// Maker that applies `E` to planned elements.
struct Applied<T, E> {
    make: Box<dyn Make<T>>,
    each: Arc<E>,
    /// Keys from which dropped elements and output lengths were planned. `None` if the stage keeps all elements and no
    /// lengths are required.
    keys: Option<Arc<LateKeys>>,
    /// True if the function is applied to single elements.
    single: bool,
    stage: StageId,
}

impl<T, E> Applied<T, E> {
    /// Returns the input element of a planned element, if the two have different numbers within their record.
    fn parent(&self, recipe: &[Member]) -> Result<Option<Member>> {
        match (&self.keys, recipe) {
            (Some(keys), [one]) => Ok(keys.parent(one.id)?.map(|id| Member { id, cut: None })),
            _ => Ok(None),
        }
    }
}

/// Returns the recipe to request from the parent: `parent` if present, otherwise `recipe`.
fn in_place_of<'a>(recipe: &'a [Member], parent: &'a Option<Member>) -> &'a [Member] {
    parent.as_ref().map_or(recipe, std::slice::from_ref)
}

impl<T: 'static, E: Each<T, Out: 'static>> Make<E::Out> for Applied<T, E> {
    fn expect(&mut self, recipe: &[Member]) {
        // If the key lookup fails, `make` returns the error.
        if let Ok(parent) = self.parent(recipe) {
            self.make.expect(in_place_of(recipe, &parent));
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<E::Out>> {
        let parent = self.parent(recipe)?;
        let made = self.make.make(in_place_of(recipe, &parent), failed, cx)?;
        let Some(element) = made else { return Ok(None) };
        let made = apply(&*self.each, self.stage, 0, element, cx);
        if let (Some(keys), Ok(made), [one]) = (&self.keys, &made, recipe) {
            let checked = keys.check(made.as_ref(), one.id);
            checked.map_err(|error| cx.blame(self.stage, self.each.name(), error.index(one.id.index)))?;
        }
        match (made, recipe) {
            (Ok(Some(made)), _) => Ok(Some(made)),
            (Ok(None), _) => Err(cx.blame(self.stage, self.each.name(), left_out())),
            (Err(error), [one]) if self.single => failed.pad(error.index(one.id.index)).map(|()| None),
            // An error of several elements cannot be attributed to one element.
            (Err(error), _) => Err(error),
        }
    }

    fn sample(&mut self, recipe: &[Member]) -> Result<Option<E::Out>> {
        let parent = self.parent(recipe)?;
        let Some(element) = self.make.sample(in_place_of(recipe, &parent))? else { return Ok(None) };
        match apply(&*self.each, self.stage, 0, element, &mut Cx::default()) {
            Err(error) if error.kind() != ErrorKind::Data => Err(error),
            made => Ok(made.unwrap_or_default()),
        }
    }

    fn lens(&self, id: ElementId, lens: &mut Vec<u32>) -> Result<()> {
        match &self.keys {
            Some(keys) => keys.lens(id, lens),
            None => Err(Error::state("a plan does not contain the lengths of its elements")),
        }
    }

    fn forget(&mut self) -> Result<()> {
        self.make.forget()
    }
}

/// The function of a stage as [`Work`].
struct Alone<E>(Arc<E>);

impl<T, E: Each<T, Out: Send + 'static> + 'static> Work<T> for Alone<E> {
    type Out = E::Out;
    type Sent = E::Out;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn work(&self, index: u64, element: T, stage: StageId, cx: &mut Cx) -> Slot<E::Out> {
        apply(&*self.0, stage, index, element, cx)
    }

    fn send(made: E::Out, _: StageId, _: &mut Cx) -> E::Out {
        made
    }

    fn receive(sent: Part<E::Out, Infallible>) -> Part<E::Out, Infallible> {
        sent
    }
}

/// A pass over [`IterMapped`].
#[doc(hidden)]
pub struct IterMappedIter<I, E, K>
where
    I: DatasetIterator,
    E: Each<I::Item, Out: Send + 'static> + 'static,
{
    made: Chunked<I, Alone<E>>,
    /// State after the last yielded element.
    keep: K,
    /// State after the last element read from the parent, which may be ahead of `keep`.
    read: K,
    /// Notes the keys of the output, if keys are recorded.
    noted: Option<Arc<LateNoted>>,
    stage: StageId,
}

impl<I, E, K> IterMappedIter<I, E, K>
where
    I: DatasetIterator<Item: Send + 'static>,
    E: Each<I::Item, Out: Send + 'static> + 'static,
    K: Keep,
{
    /// Makes a pass that applies the function on the consumer's thread.
    fn new(parent: I, each: Arc<E>, keep: K, stage: StageId) -> Self {
        Self::of(Chunked::inline(parent, Alone(each), stage), keep, stage)
    }

    fn of(made: Chunked<I, Alone<E>>, keep: K, stage: StageId) -> Self {
        Self { made, read: keep.clone(), keep, noted: None, stage }
    }
}

impl<I, E, K> DatasetIterator for IterMappedIter<I, E, K>
where
    I: DatasetIterator<Item: Send + 'static>,
    E: Each<I::Item, Out: Send + 'static> + 'static,
    K: Keep,
{
    type Item = E::Out;
    type State = K::State<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<E::Out>> {
        let Self { made, keep, read, noted, stage } = self;
        let name = made.name();
        while let Some(made) = made.next(|| read.next_index(), cx)? {
            let index = keep.next_index();
            let made = made.map_err(|error| K::at(error, index))?;
            if let Some(noted) = noted {
                noted.note(cx.member(), made.as_ref().map(|made| made as _));
            }
            let judged = keep.judge(made.is_none(), cx);
            judged.map_err(|error| cx.blame(*stage, name, error))?;
            if made.is_some() {
                return Ok(made);
            }
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        self.keep.state(self.made.state())
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        let parent = self.keep.restore(state).map_err(|error| cx.blame(self.stage, self.made.name(), error))?;
        self.read = self.keep.clone();
        self.made.restore(parent, cx)
    }
}

debug_name!(InOrder<E, K>);

impl<I, E, K> std::fmt::Debug for IterMappedIter<I, E, K>
where
    I: DatasetIterator,
    E: Each<I::Item, Out: Send + 'static> + 'static,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IterMappedIter").finish_non_exhaustive()
    }
}
