//! Evaluation of a range of root indices, shared by all executors.

use std::convert::Infallible;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::cx::{Cx, Evaluation};
use crate::dataset::map::{Many, MapDataset};
use crate::dataset::run::pace::Pace;
#[cfg(all(feature = "workers", target_os = "linux"))]
use crate::element::Element;
use crate::element::{Name, Part, Ragged, Slot};
use crate::error::{Error, ErrorKind, Result};

/// Combines the elements of a group on the evaluating thread, for example into a batch of a stream that drops nothing.
pub(crate) trait Gather<T>: Send + Sync + 'static {
    /// The result of a group.
    type Whole: Send + 'static;

    /// Returns the number of indices of a group.
    fn size(&self) -> u64;

    /// Returns true if `len` elements form a group. At the end of the stream, fewer elements may not be a
    /// group.
    fn takes(&self, len: u64) -> bool;

    /// Combines all elements of a group, in order.
    ///
    /// # Errors
    /// Fails if the elements cannot be combined.
    fn gather(&self, items: Vec<T>, cx: &mut Cx) -> Result<Self::Whole>;

    /// Makes the group of `indices` directly from columns of `dataset`. Returns `None` if the elements must be gathered
    /// instead.
    fn of_columns<D>(&self, dataset: &D, indices: Range<u64>, cx: &mut Cx) -> Option<Self::Whole>
    where
        D: MapDataset<Item = T>;

    /// Returns true if [`stack`](Self::stack) handles elements of this type.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn stacks(&self) -> bool;

    /// Stacks the elements by `stack`, and returns whether there was room for them. Returns `None` if
    /// [`gather`](Self::gather) does more than stacking.
    ///
    /// # Errors
    /// Errors of `stack`, which become errors of [`gather`](Self::gather).
    #[cfg(all(feature = "workers", target_os = "linux"))]
    #[expect(
        clippy::ptr_arg,
        reason = "what type the elements are is asked of the vector: a slice has no size to ask with"
    )]
    fn stack(&self, items: &Vec<T>, cx: &mut Cx, stack: &mut StackInto<'_>) -> Option<Result<bool>>;
}

/// A function that stacks elements into memory. Returns false if there is no room for the batch.
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) type StackInto<'a> = dyn FnMut(&[&Element]) -> Result<bool> + 'a;

/// Combines nothing: each element stays separate.
pub(crate) enum Apart {}

impl<T> Gather<T> for Apart {
    type Whole = Infallible;

    fn size(&self) -> u64 {
        match *self {}
    }

    fn takes(&self, _: u64) -> bool {
        match *self {}
    }

    fn gather(&self, _: Vec<T>, _: &mut Cx) -> Result<Infallible> {
        match *self {}
    }

    fn of_columns<D>(&self, _: &D, _: Range<u64>, _: &mut Cx) -> Option<Infallible> {
        match *self {}
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn stacks(&self) -> bool {
        match *self {}
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn stack(&self, _: &Vec<T>, _: &mut Cx, _: &mut StackInto<'_>) -> Option<Result<bool>> {
        match *self {}
    }
}

/// The results of consecutive indices.
pub(crate) struct Chunk<T, W> {
    pub(crate) parts: Vec<Part<T, W>>,
    pub(crate) made: Evaluation,
}

/// Limits for the size of a range; the smallest limit applies. They are large enough to hide the cost of the hand-over,
/// and small enough for an early first result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) time: Duration,
    pub(crate) slots: u64,
    pub(crate) bytes: usize,
}

impl Aim {
    /// Returns the size of the next range, after a range of `present` slots. `each_ns` and `each_bytes` are the
    /// nanoseconds and bytes per slot. The size at most doubles.
    pub(in crate::dataset) fn next_size(self, present: u64, each_ns: u64, each_bytes: u64) -> u64 {
        let in_time = self.time.as_nanos() as u64 / each_ns.max(1);
        let in_bytes = self.bytes as u64 / each_bytes.max(1);
        in_time.min(in_bytes).clamp(1, self.slots).min(present.saturating_mul(2))
    }
}

/// A range to evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) range: Range<u64>,
    /// True if groups that are complete in the range may be combined. Groups count from the start of the range.
    pub(crate) grouped: bool,
}

/// Evaluator of ranges of indices, several at a time.
pub(crate) trait Evaluator<T, W>: Send {
    /// Returns the maximum number of ranges that are in flight or wait to be read.
    fn window(&self) -> usize;

    /// Returns the target size of a range.
    fn aim(&self) -> Aim;

    /// Returns true if groups can arrive as a single value.
    fn gathers(&self) -> bool;

    /// Returns true if ranges should start and end at the same indices as ranges of other passes.
    fn aligns(&self) -> bool {
        false
    }

    /// Dispatches a range for evaluation.
    fn submit(&self, wanted: Wanted) -> Incoming<Chunk<T, W>>;
}

/// The results of a range, as chunks in index order. An error is a failure of the evaluator, and the last item.
/// Dropping this value cancels the range.
pub(crate) struct Incoming<C> {
    pub(crate) chunks: Receiver<Result<C>>,
    _wanted: Arc<()>,
}

impl<C> Incoming<C> {
    /// Waits for the next chunk. Returns the start and the end of the wait if the chunk was not ready.
    pub(in crate::dataset) fn receive(&self, cx: &mut Cx) -> (Result<C>, Option<(Instant, Instant)>) {
        if let Ok(chunk) = self.chunks.try_recv() {
            return (chunk, None);
        }
        cx.will_wait();
        let start = Instant::now();
        let chunk = self.chunks.recv();
        let wait = (start, Instant::now());
        let stopped =
            |_| Error::new(ErrorKind::Cancelled, "the threads or workers that evaluate elements have stopped");
        (chunk.map_err(stopped).flatten(), Some(wait))
    }

    /// Returns true if a chunk is ready.
    pub(in crate::dataset) fn is_there(&self) -> bool {
        !self.chunks.is_empty()
    }
}

/// The sender of [`Incoming`].
pub(crate) struct Outgoing<C> {
    pub(crate) chunks: Sender<Result<C>>,
    wanted: Weak<()>,
}

impl<C> Outgoing<C> {
    /// Returns true if the receiver still exists.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }
}

pub(crate) fn channel<C>() -> (Outgoing<C>, Incoming<C>) {
    let (sender, chunks) = unbounded();
    let wanted = Arc::new(());
    (Outgoing { chunks: sender, wanted: Arc::downgrade(&wanted) }, Incoming { chunks, _wanted: wanted })
}

/// Makes a group from columns. Returns `None` if the range is not a group, or if there are no columns. After a panic,
/// also returns `None`: the panic belongs to an element, and the elements are evaluated next.
pub(crate) fn of_columns<D: MapDataset, G: Gather<D::Item>>(
    dataset: &D,
    gather: &G,
    group: Range<u64>,
    cx: &mut Cx,
) -> Option<G::Whole> {
    let base = cx.base;
    let whole = || gather.of_columns(dataset, group.clone(), cx);
    let whole = if gather.takes(group.end - group.start) { catch_unwind(AssertUnwindSafe(whole)) } else { Ok(None) };
    whole.unwrap_or_else(|_| {
        cx.settle(base);
        cx.undo_chunk();
        None
    })
}

/// Returns the groups of a range. The last group may be short.
pub(crate) fn groups(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    let starts = std::iter::successors(Some(range.start), move |start| start.checked_add(size));
    starts.take_while(move |&start| start < end).map(move |start| start..end.min(start.saturating_add(size)))
}

/// Evaluates a range in chunks. Returns fewer slots if `go_on` returns false between two chunks.
pub(crate) fn evaluate_range<D: MapDataset>(
    dataset: &D,
    mut range: Range<u64>,
    pace: &Pace,
    cx: &mut Cx,
    go_on: &dyn Fn() -> bool,
) -> Many<D::Item> {
    let mut all = Many::new();
    while !range.is_empty() && go_on() {
        all.append(pace.chunk(&mut range, cx, |chunk, cx| evaluate_chunk(dataset, chunk, pace, cx)));
    }
    all
}

/// Evaluates a chunk. After a panic of a function, evaluates the elements again, one by one, so that only the slot of
/// the panic is lost.
pub(crate) fn evaluate_chunk<D: MapDataset>(dataset: &D, chunk: Range<u64>, pace: &Pace, cx: &mut Cx) -> Many<D::Item> {
    let base = cx.base;
    let slots = catch_unwind(AssertUnwindSafe(|| read_chunk(dataset, chunk.clone(), pace, cx)));
    slots.unwrap_or_else(|_| {
        cx.settle(base);
        cx.undo_chunk();
        chunk.map(|index| evaluate(dataset, index, cx)).collect()
    })
}

/// Like [`evaluate_chunk`], without catching panics.
pub(in crate::dataset) fn read_chunk<D: MapDataset>(
    dataset: &D,
    chunk: Range<u64>,
    pace: &Pace,
    cx: &mut Cx,
) -> Many<D::Item> {
    let first = chunk.start;
    cx.begin_chunk((chunk.end - first).max(1));
    pace.get(dataset, chunk, cx).map_errors(|place, error| error.index(first + place as u64))
}

/// Returns the rows of a chunk, or `None` if rows are not available without elements. After a panic, also returns
/// `None`: the panic belongs to an element, and the elements are evaluated next.
pub(in crate::dataset) fn ragged<D: MapDataset>(
    dataset: &D,
    chunk: Range<u64>,
    names: &[Name],
    cx: &mut Cx,
) -> Option<Ragged> {
    let base = cx.base;
    let indices: Vec<u64> = chunk.collect();
    cx.begin_chunk((indices.len() as u64).max(1));
    let rows = catch_unwind(AssertUnwindSafe(|| dataset.bulk()?.get_ragged(&indices, names, cx)));
    let rows = rows.unwrap_or_else(|_| {
        cx.settle(base);
        None
    });
    let is_all = |rows: &Ragged| rows.len() == indices.len() || rows.ids().is_some();
    let rows = rows.filter(is_all);
    if rows.is_none() {
        cx.retract_chunk((indices.len() as u64).max(1));
    }
    rows
}

/// Evaluates an index.
pub(crate) fn evaluate<D: MapDataset>(dataset: &D, index: u64, cx: &mut Cx) -> Slot<D::Item> {
    cx.begin_element();
    let base = cx.base;
    caught(|| dataset.get(index, cx)).map_err(|e| {
        cx.settle(base);
        e.index(index)
    })
}

/// Converts a panic in a user function to an error, so that the thread survives.
pub(crate) fn caught<R>(work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(payload: &(dyn std::any::Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::User, format!("a function panicked: {}", text.unwrap_or("(no message)")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::cx::Recorder;
    use crate::dataset::map::Range as Numbers;

    #[test]
    fn a_panic_takes_only_its_own_slot_and_nothing_is_counted_twice() {
        let recorder = Recorder::new(4);
        let mut cx = Cx::new(&recorder);
        let bad = |x| if x == 300 { panic!("three hundred") } else { x };
        let ds = Numbers::new(0, 10).zip(Numbers::new(0, 500).map(bad)).map(|(_, x)| x);
        let pace = Pace::of(&ds);
        let slots = evaluate_range(&ds, 0..500, &pace, &mut cx, &|| true);
        assert_eq!(slots.len(), 500);
        for (index, slot) in slots.into_iter().enumerate() {
            match slot {
                Ok(slot) => assert!(slot == Some(index as i64) && index != 300),
                Err(error) => assert_eq!(error.to_string(), "element 300: a function panicked: three hundred"),
            }
        }
        cx.flush();
        let counts: Vec<u64> = recorder.totals().iter().map(|tally| tally.counts.elements).collect();
        assert_eq!(counts, [500, 500, 500, 499]);
    }
}
