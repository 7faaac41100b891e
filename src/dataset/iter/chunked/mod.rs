//! Applies the function of a stage to elements of a stream: on the reading thread, or in chunks on threads or workers.
//!
//! The consumer's thread reads the stream in order and takes its state after each element. Evaluators apply the
//! function to chunks of elements. Results come back in order, each with the state after its element. A state
//! therefore does not depend on the evaluator. After a restore, elements that were read ahead are read again.

mod evaluator;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod remote;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::evaluator::Apply;
use super::DatasetIterator;
use crate::cx::{Cx, ReadPositions, StageId, Taken};
use crate::dataset::run::ahead::Open;
use crate::dataset::run::evaluate::{Chunk, Incoming};
use crate::element::{Part, Slot};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// Function of a stage, applied to elements that were read.
#[cfg_attr(
    not(all(feature = "workers", target_os = "linux")),
    allow(dead_code, reason = "worker processes send results")
)]
pub(super) trait Work<T>: Send + Sync + 'static {
    /// Type of a result.
    type Out: Send + 'static;
    /// Type of a result that a worker process sends.
    type Sent: Send + 'static;

    /// Returns the name of the stage, for errors.
    fn name(&self) -> &'static str;

    /// Applies the function to the element at `index`, as the work of `stage`. Returns `None` if it drops the element.
    ///
    /// # Errors
    /// Errors of the function, with the stage.
    fn work(&self, index: u64, element: T, stage: StageId, cx: &mut Cx) -> Slot<Self::Out>;

    /// Converts a result in the worker process that sends it, as the work of `stage`.
    fn send(made: Self::Out, stage: StageId, cx: &mut Cx) -> Self::Sent;

    /// Converts results in the process that receives them.
    fn receive(sent: Part<Self::Sent, Infallible>) -> Part<Self::Out, Infallible>;
}

/// A pass that applies the function of a stage to the elements of a parent.
pub(super) struct Chunked<I: DatasetIterator, W: Work<I::Item>> {
    parent: I,
    work: Arc<W>,
    stage: StageId,
    ahead: Option<Box<Ahead<I, W>>>,
}

/// Longest time spent on reading a chunk. Elements that were read do not wait longer for a slow source.
const READ_TIME: Duration = Duration::from_millis(2);
/// Smallest chunk from which the cost of an element is judged.
const ENOUGH: u64 = 16;
/// Number of cheap elements that the reading thread evaluates before the next attempt with chunks.
const CHEAP_RUN: u64 = 1 << 14;

impl<I: DatasetIterator<Item: Send + 'static>, W: Work<I::Item>> Chunked<I, W> {
    /// Applies `work` on the consumer's thread.
    pub(super) fn inline(parent: I, work: W, stage: StageId) -> Self {
        Self { parent, work: Arc::new(work), stage, ahead: None }
    }

    /// Applies `work` on the threads or in the workers of `run`, if it has any.
    pub(super) fn new(parent: I, work: W, stage: StageId, run: &Runtime) -> Self {
        let work = Arc::new(work);
        let ahead = evaluator::evaluator(&work, run, stage).map(|others| Box::new(Ahead::new(others)));
        Self { parent, work, stage, ahead }
    }

    /// Returns the name of the stage.
    pub(super) fn name(&self) -> &'static str {
        self.work.name()
    }

    /// Returns the function's result for the next element, or `None` at the end. `number` returns the index of each
    /// element as it is read.
    ///
    /// # Errors
    /// Errors of the parent. Errors of the function are results.
    pub(super) fn next(&mut self, mut number: impl FnMut() -> u64, cx: &mut Cx) -> Result<Option<Slot<W::Out>>> {
        if let Some(ahead) = &mut self.ahead
            && !ahead.is_here()
        {
            return ahead.next(&mut self.parent, self.stage, &mut number, cx);
        }
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        Ok(Some(self.work.work(number(), element, self.stage, cx)))
    }

    /// Returns the parent's position after the last yielded element.
    pub(super) fn state(&self) -> I::State {
        let at = self.ahead.as_ref().and_then(|ahead| ahead.at.clone());
        at.unwrap_or_else(|| self.parent.state())
    }

    /// Returns true if elements or the end were read ahead before the last edit took effect, and must be read again.
    pub(super) fn is_stale(&self, cx: &Cx) -> bool {
        let has_read = |ahead: &Ahead<I, W>| !ahead.pending.is_empty() || ahead.stop.is_some();
        self.ahead.as_ref().is_some_and(|ahead| ahead.changes != cx.changes() && has_read(ahead))
    }

    /// Moves the parent to a position. Discards elements that were read ahead.
    ///
    /// # Errors
    /// Errors of the parent.
    pub(super) fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        if let Some(ahead) = &mut self.ahead {
            ahead.forget();
        }
        self.parent.restore(state, cx)
    }
}

/// Chunks that were read and have not been yielded.
struct Ahead<I: DatasetIterator, W: Work<I::Item>> {
    others: Box<dyn Apply<I::Item, W::Out>>,
    /// The parent's position after the last yielded element; `None` if no later element was read.
    at: Option<I::State>,
    /// Results of the first chunk that have arrived.
    parts: std::vec::IntoIter<Part<W::Out, Infallible>>,
    open: Open<W::Out>,
    pending: VecDeque<Pending<I::State, W::Out>>,
    /// Set if the parent has ended or failed, with the error.
    stop: Option<Option<Error>>,
    size: u64,
    /// Elements yielded so far.
    given: u64,
    /// Number of next elements that the reading thread evaluates itself, because they are cheap.
    here: u64,
    /// Number of edits that had taken effect when the last chunk was read.
    changes: u64,
}

/// A chunk that was submitted to the evaluator.
struct Pending<S, U> {
    incoming: Incoming<Chunk<U, Infallible>>,
    /// Positions after its elements that have not been yielded, each with [`Cx::read`].
    states: VecDeque<(S, ReadPositions)>,
}

impl<I: DatasetIterator<Item: Send + 'static>, W: Work<I::Item>> Ahead<I, W> {
    fn new(others: Box<dyn Apply<I::Item, W::Out>>) -> Self {
        let (parts, pending) = (Vec::new().into_iter(), VecDeque::new());
        let open = Open::default();
        Self { others, at: None, parts, open, pending, stop: None, size: 1, given: 0, here: 0, changes: 0 }
    }

    fn forget(&mut self) {
        (self.at, self.parts, self.open, self.stop) = (None, Vec::new().into_iter(), Open::default(), None);
        self.pending.clear();
    }

    /// Returns true if the reading thread evaluates the next element and no element was read ahead.
    fn is_here(&mut self) -> bool {
        let is = self.here > 0 && self.pending.is_empty() && self.stop.is_none();
        if is {
            (self.here, self.at) = (self.here - 1, None);
        }
        is
    }

    fn next(
        &mut self,
        parent: &mut I,
        stage: StageId,
        number: &mut dyn FnMut() -> u64,
        cx: &mut Cx,
    ) -> Result<Option<Slot<W::Out>>> {
        loop {
            if let Some(slot) = self.open.next() {
                self.given += 1;
                if let Some(first) = self.pending.front_mut() {
                    let after = first.states.pop_front();
                    after.iter().for_each(|(_, read)| cx.note_all_read(read));
                    self.at = after.map(|(state, _)| state);
                    if first.states.is_empty() {
                        self.pending.pop_front();
                    }
                }
                return Ok(Some(slot));
            }
            if let Some(part) = self.parts.next() {
                self.open = Open::of(part);
                continue;
            }
            self.read_on(parent, number, cx);
            let Some(first) = self.pending.front() else {
                self.at = None;
                return self.stop.take().flatten().map_or(Ok(None), Err);
            };
            let (chunk, wait) = first.incoming.receive(cx);
            // The chunk stays the first, so its error comes again and its elements are not skipped.
            let Chunk { parts, made } = chunk?;
            let count = parts.iter().map(Part::len).sum();
            let taken = Taken { first: self.given, count, made, wait, idle: wait.is_some(), holds_up: false };
            cx.taken(stage, &taken);
            self.learn(count, made.took(), made.bytes);
            self.parts = parts.into_iter();
        }
    }

    /// Adapts the chunk size to a chunk of `count` elements, from its time and bytes.
    fn learn(&mut self, count: u64, took: Duration, bytes: u64) {
        let each = took.as_nanos() as u64 / count.max(1);
        if count >= ENOUGH && each < self.others.least_time().as_nanos() as u64 {
            (self.here, self.size) = (CHEAP_RUN, ENOUGH);
        } else {
            self.size = self.others.aim().next_size(self.size, each, bytes / count.max(1));
        }
    }

    /// Reads at least one chunk if there is room, and further chunks until the first result arrives.
    fn read_on(&mut self, parent: &mut I, number: &mut dyn FnMut() -> u64, cx: &mut Cx) {
        while self.here == 0 && self.stop.is_none() && self.pending.len() < self.others.window().max(1) {
            self.read(parent, number, cx);
            if self.pending.front().is_some_and(|first| first.incoming.is_there()) {
                return;
            }
        }
    }

    /// Reads the elements of a chunk and submits them.
    fn read(&mut self, parent: &mut I, number: &mut dyn FnMut() -> u64, cx: &mut Cx) {
        let (mut elements, mut states, mut first) = (Vec::new(), VecDeque::new(), None);
        let (start, before) = (Instant::now(), cx.read().clone());
        self.changes = cx.changes();
        self.at.get_or_insert_with(|| parent.state());
        while (elements.len() as u64) < self.size && start.elapsed() < READ_TIME {
            match parent.next(cx) {
                Ok(Some(element)) => {
                    elements.push(element);
                    states.push_back((parent.state(), cx.read().clone()));
                    let index = number();
                    first.get_or_insert(index);
                }
                // The elements before the end are yielded first.
                end => {
                    self.stop = Some(end.err());
                    break;
                }
            }
        }
        cx.set_read(before);
        let Some(first) = first else { return };
        for (incoming, count) in self.others.submit(first, elements) {
            let states = states.drain(..count.min(states.len())).collect();
            self.pending.push_back(Pending { incoming, states });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, interleave, laws};
    use crate::dataset::map::{MapDatasetExt, Range};
    use crate::exec::Executor;

    /// Number of calls under way, and the most so far.
    #[derive(Default)]
    struct Calls(Mutex<(usize, usize)>, Condvar);

    impl Calls {
        /// Returns after `count` calls have been under way at once, during this call or earlier.
        fn meet(&self, count: usize) {
            let mut calls = self.0.lock().unwrap();
            calls.0 += 1;
            calls.1 = calls.1.max(calls.0);
            self.1.notify_all();
            let patience = Duration::from_secs(60);
            let (mut calls, timeout) = self.1.wait_timeout_while(calls, patience, |calls| calls.1 < count).unwrap();
            assert!(!timeout.timed_out(), "{} calls at a time", calls.1);
            calls.0 -= 1;
        }
    }

    /// Returns a stream without random access.
    fn stream(len: i64) -> impl IterDataset<Item = i64> {
        Range::new(0, len).to_iter().limit(u64::MAX)
    }

    fn on_threads<T: Send + 'static>(ds: &impl IterDataset<Item = T>, threads: usize) -> Vec<Result<T>> {
        let run = Runtime::new(Executor::Threads(threads), None).unwrap();
        let (mut iter, mut cx) = (ds.iter(&run).unwrap(), run.cx());
        std::iter::from_fn(|| iter.next(&mut cx).transpose()).collect()
    }

    /// Returns a function that waits until it runs on 4 threads at once.
    fn meeting<T>() -> impl Fn(T) -> T + Send + Sync + 'static {
        let calls = Calls::default();
        move |element| {
            calls.meet(4);
            element
        }
    }

    #[test]
    fn elements_of_a_stream_are_mapped_on_all_threads_at_a_time_and_come_in_order() {
        let all = |ds: Vec<Result<i64>>| ds.into_iter().collect::<Result<Vec<_>>>().unwrap();
        let expected: Vec<_> = (0..100).collect();
        assert_eq!(all(on_threads(&stream(100).map(meeting()), 4)), expected);
        let filter = meeting();
        assert_eq!(all(on_threads(&stream(100).filter(move |x| filter(*x) >= 0), 4)), expected);
        let draw = meeting();
        assert_eq!(all(on_threads(&stream(100).random_map(1, move |x, _| draw(x)), 4)), expected);
        let split = meeting();
        assert_eq!(all(on_threads(&stream(100).flat_map(move |x| [split(x)]), 4)), expected);
        let both = interleave([stream(50), stream(50)], 2).map(meeting());
        assert_eq!(all(on_threads(&both, 4)), (0..100).map(|x| x / 2).collect::<Vec<_>>());
    }

    #[test]
    fn errors_and_panics_stand_where_their_elements_do() {
        let odd = |x| if x % 3 == 1 { Err(Error::data(format!("{x} is bad"))) } else { Ok(x) };
        let panics = |x| if x == 6 { panic!("six") } else { x };
        for threads in [1, 2, 8] {
            let ds = stream(9).try_map(odd).map(panics);
            let slots: Vec<_> =
                on_threads(&ds, threads).into_iter().map(|slot| slot.map_err(|e| e.to_string())).collect();
            let bad = |x| Err(format!("stage 3 map: {x} is bad"));
            let six = Err("stage 4 map: a function panicked: six".to_owned());
            assert_eq!(slots, [Ok(0), bad(1), Ok(2), Ok(3), bad(4), Ok(5), six, bad(7), Ok(8)]);
        }
    }

    #[test]
    fn states_are_those_of_one_thread_whatever_is_read_ahead() {
        let ds = stream(100)
            .filter(|x| x % 3 != 0)
            .random_map(5, |x, rng| (x, rng.random_raw()))
            .flat_map(|(x, draw)| vec![(x, draw); (x % 4) as usize])
            .window_shuffle(10, 3)
            .map(|(x, draw)| (2 * x, draw));
        assert_eq!(laws::check(&ds).len() as i64, (0..100).filter(|x| x % 3 != 0).map(|x| x % 4).sum::<i64>());
        let ds = stream(60).map(|x| x + 1).repeat(3).skip(20).map(|x| x - 1);
        assert_eq!(laws::check(&ds).len(), 160);
    }
}
