use std::convert::Infallible;
use std::sync::Arc;
use std::vec;

use serde::{Deserialize, Serialize};

use super::DatasetIterator;
use super::chunked::{Chunked, Work};
use super::flow::{Flow, Flowing, Parted, PartedBy, Start};
use crate::cx::{Cx, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::map::{Each, MapFn, TryMapFn};
use crate::dataset::memory::{Held, Memory};
use crate::dataset::plan::{Counted, StageRecorder, plan_fan_out};
use crate::dataset::run::ahead;
use crate::dataset::run::opaque::debug_name;
use crate::dataset::stage::Role;
use crate::element::{Name, Part, Slot};
use crate::error::{Error, Result};

/// See [`IterDatasetExt::flat_map`](super::IterDatasetExt::flat_map).
pub type IterFlatMap<D, F> = Flowing<D, FlatMapFlow<MapFn<F>>>;

/// See [`IterDatasetExt::try_flat_map`](super::IterDatasetExt::try_flat_map).
pub type IterTryFlatMap<D, F> = Flowing<D, FlatMapFlow<TryMapFn<F>>>;

/// [`Flow`] of [`IterFlatMap`] and [`IterTryFlatMap`]. `E` makes the pieces of an element.
#[doc(hidden)]
pub struct FlatMapFlow<E>(pub(super) Arc<E>);

impl<E: Send + Sync> Facts for FlatMapFlow<E> {
    facts! {
        name: "flat_map",
        role: Role::FanOut,
        is_each: true,
        memory: Some(Memory::elements(Held::NONE, Held::Pieces)),
    }
}

impl<I, C, E> Flow<I> for FlatMapFlow<E>
where
    I: DatasetIterator<Item: Send + 'static>,
    C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
    E: Each<I::Item, Out = C> + 'static,
{
    type Pass = IterFlatMapIter<I, E, C>;

    fn start(&self, parent: I, Start { stage, run, .. }: Start<'_>) -> Result<Self::Pass> {
        let opened = Chunked::new(parent, Opens(self.0.clone()), stage, run);
        Ok(IterFlatMapIter { recorder: run.key_recorder(stage), ..IterFlatMapIter::new(opened, stage) })
    }

    /// Requests no lengths from the parent: the stage's own keys contain the lengths of its pieces.
    fn asks(&self, _: &[Name]) -> Vec<Name> {
        Vec::new()
    }

    fn start_part(&self, parent: Parted<I::Item, I::State>, at: Start<'_>) -> Result<Option<PartedBy<I, Self>>>
    where
        Self: 'static,
        I::Item: Send + 'static,
    {
        let (Parted::Plan(parent), Start { stage, planning: Some(planning), .. }) = (parent, at) else {
            return Ok(None);
        };
        let plan = plan_fan_out(parent, Listed(self.0.clone()), stage, planning, |parent, pieces| {
            Box::new(IterFlatMapIter::new(Chunked::inline(parent, Opens(Arc::new(pieces)), stage), stage))
        })?;
        Ok(plan.map(Parted::Plan))
    }

    fn unplanned(&self) -> &'static str {
        "makes any number of elements from each; keys contain this number only for single records, before packing"
    }
}

/// The function with its pieces collected into a list.
struct Listed<E>(Arc<E>);

impl<E: Send + Sync> Facts for Listed<E> {
    facts! { name: "flat_map", role: Role::FanOut }
}

impl<T, C: IntoIterator, E: Each<T, Out = C>> Each<T> for Listed<E> {
    type Out = Vec<C::Item>;

    fn apply(&self, index: u64, element: T) -> Result<Option<Vec<C::Item>>> {
        Ok(self.0.apply(index, element)?.map(|pieces| pieces.into_iter().collect()))
    }

    fn count(&self, made: &[Vec<C::Item>]) -> u64 {
        made.iter().map(|pieces| pieces.len() as u64).sum()
    }
}

/// The pieces of an element.
enum Pieces<C: IntoIterator> {
    /// Made on request.
    Lazy(C::IntoIter),
    /// Made by a worker process.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        allow(dead_code, reason = "worker processes send results")
    )]
    Made(vec::IntoIter<C::Item>),
}

impl<C: IntoIterator> Iterator for Pieces<C> {
    type Item = C::Item;

    fn next(&mut self) -> Option<C::Item> {
        match self {
            Self::Lazy(pieces) => pieces.next(),
            Self::Made(pieces) => pieces.next(),
        }
    }
}

/// The function of a stage as [`Work`]: returns the pieces of an element. A worker process makes all of them.
struct Opens<E>(Arc<E>);

impl<T, C, E> Work<T> for Opens<E>
where
    C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
    E: Each<T, Out = C> + 'static,
{
    type Out = Pieces<C>;
    type Sent = Vec<C::Item>;

    fn name(&self) -> &'static str {
        "flat_map"
    }

    fn work(&self, index: u64, element: T, stage: StageId, cx: &mut Cx) -> Slot<Pieces<C>> {
        let pieces = cx.consumed(stage, || self.0.apply(index, element));
        let pieces = pieces.map_err(|e| cx.blame(stage, Work::<T>::name(self), e))?;
        Ok(pieces.map(|pieces| Pieces::Lazy(pieces.into_iter())))
    }

    fn send(made: Pieces<C>, stage: StageId, cx: &mut Cx) -> Vec<C::Item> {
        cx.consumed(stage, || made.collect())
    }

    fn receive(sent: Part<Vec<C::Item>, Infallible>) -> Part<Pieces<C>, Infallible> {
        Part::Slots(
            ahead::Open::of(sent).map(|slot| Ok(slot?.map(|pieces| Pieces::Made(pieces.into_iter())))).collect(),
        )
    }
}

/// A pass over [`IterFlatMap`] or [`IterTryFlatMap`].
#[doc(hidden)]
pub struct IterFlatMapIter<I, E, C>
where
    I: DatasetIterator,
    C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
    E: Each<I::Item, Out = C> + 'static,
{
    opened: Chunked<I, Opens<E>>,
    open: Option<Open<I::State, Pieces<C>>>,
    /// Notes the keys of the output, if keys are recorded.
    recorder: Option<Arc<StageRecorder>>,
    stage: StageId,
}

/// The element whose pieces are being yielded.
struct Open<S, P> {
    before: S,
    pieces: P,
    given: u64,
    /// Count of the yielded pieces, if keys are recorded.
    counted: Option<Counted>,
}

/// Position of an [`IterFlatMapIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlatMapState<S> {
    /// The parent's position before the element whose pieces are being yielded.
    pub parent: S,
    /// Yielded pieces of this element.
    pub given: u64,
}

impl<I, C, E> IterFlatMapIter<I, E, C>
where
    I: DatasetIterator<Item: Send + 'static>,
    C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
    E: Each<I::Item, Out = C> + 'static,
{
    fn new(opened: Chunked<I, Opens<E>>, stage: StageId) -> Self {
        Self { opened, open: None, recorder: None, stage }
    }

    /// Opens the next element of the parent. Returns `false` at the parent's end.
    fn open_next(&mut self, cx: &mut Cx) -> Result<bool> {
        let before = self.opened.state();
        if self.opened.is_stale(cx) {
            self.opened.restore(before.clone(), cx)?;
        }
        let Some(pieces) = self.opened.next(|| 0, cx)? else { return Ok(false) };
        let counted = self.recorder.as_ref().and_then(|recorder| recorder.begin(cx.element()));
        self.open = pieces?.map(|pieces| Open { before, pieces, given: 0, counted });
        Ok(true)
    }
}

impl<I, C, E> DatasetIterator for IterFlatMapIter<I, E, C>
where
    I: DatasetIterator<Item: Send + 'static>,
    C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
    E: Each<I::Item, Out = C> + 'static,
{
    type Item = C::Item;
    type State = FlatMapState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<C::Item>> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(piece) = cx.consumed(self.stage, || open.pieces.next()) {
                    open.given += 1;
                    if let Some(recorder) = &self.recorder {
                        recorder.count(&mut open.counted, &piece);
                    }
                    cx.set_element(None);
                    cx.produced(self.stage, 1, 0);
                    return Ok(Some(piece));
                }
                if let Some((recorder, open)) = self.recorder.as_ref().zip(self.open.take()) {
                    recorder.end(open.counted);
                }
                self.open = None;
            }
            if !self.open_next(cx)? {
                return Ok(None);
            }
        }
    }

    fn state(&self) -> Self::State {
        match &self.open {
            Some(open) if open.given > 0 => FlatMapState { parent: open.before.clone(), given: open.given },
            _ => FlatMapState { parent: self.opened.state(), given: 0 },
        }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.open = None;
        self.opened.restore(state.parent, cx)?;
        if state.given == 0 {
            return Ok(());
        }
        let opened = self.open_next(cx)?;
        let open = self.open.as_mut().filter(|_| opened);
        let skipped = open.is_some_and(|open| {
            open.given = state.given;
            // The count would lack the skipped pieces.
            open.counted = None;
            (0..state.given).all(|_| open.pieces.next().is_some())
        });
        if skipped { Ok(()) } else { Err(too_few(self.stage, state.given, cx)) }
    }
}

#[cold]
fn too_few(stage: StageId, given: u64, cx: &Cx) -> Error {
    let error = Error::state(format!("{given} pieces of an element were yielded, but it now has fewer"));
    cx.blame(stage, "flat_map", error.help("the data or the function has changed since the checkpoint"))
}

debug_name!(FlatMapFlow<E>);

impl<I, E, C> std::fmt::Debug for IterFlatMapIter<I, E, C>
where
    I: DatasetIterator,
    C: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
    E: Each<I::Item, Out = C> + 'static,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IterFlatMapIter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{ErrorKind, MapDatasetExt};

    fn repeated() -> impl IterDataset<Item = i64, Iter: DatasetIterator<State: Serialize>> {
        IterDatasetExt::flat_map(Range::new(0, 7).to_iter(), |x| (0..x % 4).map(move |i| 10 * x + i))
    }

    #[test]
    fn each_becomes_any_number() {
        assert_eq!(laws::check(&repeated()), [10, 20, 21, 30, 31, 32, 50, 60, 61]);
    }

    #[test]
    fn an_element_that_has_shrunk_since_is_a_state_error() {
        let ds = IterDatasetExt::flat_map(Range::new(0, 3).to_iter(), |x| vec![x; 2]);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let state = FlatMapState { given: 3, ..iter.state() };
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
}
