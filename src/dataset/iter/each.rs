//! Stages of streams that see each element alone: [`InOrder`] applies an [`Each`], and [`Keep`] holds further state.

use std::convert::Infallible;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chunked::{Chunked, Work};
use super::flow::{Flow, Flowing, Parted, PartedBy, Start};
use super::{CounterState, DatasetIterator, FilterState};
use crate::cx::{Cx, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::map::{Each, apply};
use crate::dataset::memory::Memory;
use crate::dataset::plan::{PlanPass, StageRecorder, plan_each};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::run::thresholds::Watch;
use crate::dataset::stage::Role;
use crate::element::{Name, Part, Slot};
use crate::error::{Error, Result};

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
    fn at(error: Error, _index: u64) -> Error {
        error
    }

    /// Counts an element as dropped or kept.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if too many elements are dropped.
    fn judge(&mut self, _dropped: bool, _cx: &mut Cx) -> Result<()> {
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
    facts! { is_each: true, memory: K::memory() }

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
        Ok(IterMappedIter { recorder: run.key_recorder(stage), ..IterMappedIter::of(made, self.keep.clone(), stage) })
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
        let start = |parent, by_key| {
            Box::new(IterMappedIter::new(parent, Arc::new(by_key), self.keep.clone(), stage)) as PlanPass<_>
        };
        Ok(plan_each(parent, &self.each, stage, planning, start)?.map(Parted::Plan))
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
    recorder: Option<Arc<StageRecorder>>,
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
        Self { made, read: keep.clone(), keep, recorder: None, stage }
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
        if self.made.is_stale(cx) {
            self.restore(self.state(), cx)?;
        }
        let Self { made, keep, read, recorder, stage } = self;
        let name = made.name();
        while let Some(made) = made.next(|| read.next_index(), cx)? {
            let index = keep.next_index();
            let made = made.map_err(|error| K::at(error, index))?;
            if let Some(recorder) = recorder {
                recorder.record(cx.element(), made.as_ref().map(|made| made as _));
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
