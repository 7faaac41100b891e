//! Elements of a stream through the function of a stage: on the thread that reads the stream, or in chunks on the threads of the run.
//!
//! The thread that asks for elements reads the stream, in order, and takes its state behind each element. Threads apply the function to
//! chunks of elements. The elements come back in order, each with the state behind it, so that a state never depends on who applied the
//! function: elements that were read ahead are read again after a restore.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::DatasetIterator;
use crate::cx::{Cx, Made, StageId, Taken, Watch};
use crate::dataset::run::evaluate::{Aim, Incoming, caught, channel};
use crate::error::{Error, Result};
use crate::exec::{Engine, Pool, Runtime};

/// The function of a stage, as it is applied to an element that was read.
pub(super) trait Work<T>: Send + Sync + 'static {
    /// Result of an element.
    type Out: Send + 'static;

    /// Name of the stage, for errors.
    fn name(&self) -> &'static str;

    /// Applies the function to the element at `index`, as the work of `stage`.
    ///
    /// # Errors
    /// Errors of the function, with the stage.
    fn work(&self, index: u64, element: T, stage: StageId, cx: &mut Cx) -> Result<Self::Out>;
}

/// A pass over a parent, whose elements go through the function of a stage.
pub(super) struct Chunked<I: DatasetIterator, W: Work<I::Item>> {
    parent: I,
    work: Arc<W>,
    stage: StageId,
    ahead: Option<Box<Ahead<I::State, W::Out>>>,
}

/// Time that reading a chunk takes at most: elements that have come do not wait longer for those of a slow source.
const READ_TIME: Duration = Duration::from_millis(2);

/// Size of chunks: see `OnPool` of prefixes.
const AIM: Aim = Aim { time: Duration::from_millis(2), slots: 1024, bytes: usize::MAX };

impl<I, W> Chunked<I, W>
where
    I: DatasetIterator<Item: Send + 'static>,
    W: Work<I::Item>,
{
    /// Applies `work` on the thread that asks for elements.
    pub(super) fn inline(parent: I, work: W, stage: StageId) -> Self {
        Self { parent, work: Arc::new(work), stage, ahead: None }
    }

    /// Applies `work` on the threads of `run`, if it has any.
    pub(super) fn new(parent: I, work: W, stage: StageId, run: &Runtime) -> Self {
        let ahead = match run.engine() {
            Engine::Threads(pool) => Some(Box::new(Ahead::new(parent.state(), pool.clone(), run.clone()))),
            _ => None,
        };
        Self { ahead, ..Self::inline(parent, work, stage) }
    }

    /// Name of the stage.
    pub(super) fn name(&self) -> &'static str {
        self.work.name()
    }

    /// The function's result for the next element, or `None` at the end. `number` is called as an element is read, and gives its index.
    ///
    /// # Errors
    /// Errors of the parent. Those of the function are results.
    pub(super) fn next(&mut self, number: impl FnMut() -> u64, cx: &mut Cx) -> Result<Option<Result<W::Out>>> {
        let Self { parent, work, stage, ahead } = self;
        let mut number = number;
        match ahead {
            Some(ahead) => ahead.next(parent, work, *stage, &mut number, cx),
            None => Ok(parent.next(cx)?.map(|element| work.work(number(), element, *stage, cx))),
        }
    }

    /// The parent's position behind the element that came last.
    pub(super) fn state(&self) -> I::State {
        self.ahead.as_ref().map_or_else(|| self.parent.state(), |ahead| ahead.at.clone())
    }

    /// Has the parent go to a position. Elements that were read ahead are forgotten.
    ///
    /// # Errors
    /// Errors of the parent.
    pub(super) fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        if let Some(ahead) = &mut self.ahead {
            ahead.forget();
        }
        let restored = self.parent.restore(state, cx);
        if let Some(ahead) = &mut self.ahead {
            ahead.at = self.parent.state();
        }
        restored
    }
}

/// Chunks that were read and are not handed out yet.
struct Ahead<S, U> {
    pool: Arc<Pool>,
    run: Runtime,
    /// Position behind the element that was handed out last.
    at: S,
    /// Results that have come, each with the position behind it.
    open: std::iter::Zip<std::vec::IntoIter<S>, std::vec::IntoIter<Result<U>>>,
    /// Chunks behind them, and the positions behind their elements.
    pending: VecDeque<(Incoming<Chunk<U>>, Vec<S>)>,
    /// Set if nothing was read behind them, because the parent ended or failed.
    stop: Option<Option<Error>>,
    size: u64,
    /// Elements that were handed out.
    given: u64,
}

/// Results of a chunk.
struct Chunk<U> {
    results: Vec<Result<U>>,
    made: Made,
}

impl<S: Clone, U: Send + 'static> Ahead<S, U> {
    fn new(at: S, pool: Arc<Pool>, run: Runtime) -> Self {
        let (open, pending) = (nothing(), VecDeque::new());
        Self { pool, run, at, open, pending, stop: None, size: 1, given: 0 }
    }

    fn forget(&mut self) {
        (self.open, self.stop) = (nothing(), None);
        self.pending.clear();
    }

    fn next<I, W>(
        &mut self,
        parent: &mut I,
        work: &Arc<W>,
        stage: StageId,
        number: &mut dyn FnMut() -> u64,
        cx: &mut Cx,
    ) -> Result<Option<Result<U>>>
    where
        I: DatasetIterator<Item: Send + 'static, State = S>,
        W: Work<I::Item, Out = U>,
    {
        loop {
            if let Some((at, result)) = self.open.next() {
                self.at = at;
                self.given += 1;
                return Ok(Some(result));
            }
            // A chunk for each that is handed out, and more until the first is there.
            while self.stop.is_none() && self.pending.len() < self.pool.window().max(1) {
                self.read(parent, work, stage, number, cx);
                if self.pending.front().is_some_and(|(incoming, _)| incoming.is_there()) {
                    break;
                }
            }
            let Some((incoming, states)) = self.pending.pop_front() else {
                self.at = parent.state();
                return self.stop.take().flatten().map_or(Ok(None), Err);
            };
            let (chunk, wait) = incoming.receive(cx);
            let Chunk { results, made } = chunk?;
            let count = results.len() as u64;
            let taken = Taken { first: self.given, count, made, wait, idle: wait.is_some(), holds_up: false };
            cx.taken(stage, &taken);
            self.size = AIM.next_size(self.size, made.took().as_nanos() as u64 / count.max(1), 0);
            self.open = states.into_iter().zip(results);
        }
    }

    /// Reads the elements of a chunk, and has the function applied to them.
    fn read<I, W>(
        &mut self,
        parent: &mut I,
        work: &Arc<W>,
        stage: StageId,
        number: &mut dyn FnMut() -> u64,
        cx: &mut Cx,
    ) where
        I: DatasetIterator<Item: Send + 'static, State = S>,
        W: Work<I::Item, Out = U>,
    {
        let (mut elements, mut states, start) = (Vec::new(), Vec::new(), Instant::now());
        while (elements.len() as u64) < self.size && start.elapsed() < READ_TIME {
            match parent.next(cx) {
                Ok(Some(element)) => {
                    elements.push((number(), element));
                    states.push(parent.state());
                }
                // Elements before it are handed out first.
                end => {
                    self.stop = Some(end.err());
                    break;
                }
            }
        }
        if !elements.is_empty() {
            self.pending.push_back((self.submit(elements, work.clone(), stage), states));
        }
    }

    /// Has the function applied to the elements of a chunk, each with its index.
    fn submit<T, W>(&self, elements: Vec<(u64, T)>, work: Arc<W>, stage: StageId) -> Incoming<Chunk<U>>
    where
        T: Send + 'static,
        W: Work<T, Out = U>,
    {
        let (outgoing, incoming) = channel();
        let (run, pool) = (self.run.clone(), self.pool.clone());
        self.pool.submit(Box::new(move |open| {
            let (watch, count) = (Watch::start(), elements.len());
            let (mut cx, mut results) = (run.cx_ahead(), Vec::with_capacity(count));
            for (index, element) in elements {
                // A stream that was moved or dropped needs nothing more.
                if !open.get() || !outgoing.is_wanted() {
                    return;
                }
                cx.begin_element();
                let result = caught(|| work.work(index, element, stage, &mut cx));
                results.push(result.map_err(|error| cx.blame(stage, work.name(), error)));
            }
            // The counts are in before anybody can see the elements.
            drop(cx);
            pool.evaluated(count as u64);
            let _ = outgoing.chunks.send(Ok(Chunk { results, made: watch.made(None) }));
        }));
        incoming
    }
}

fn nothing<S, U>() -> std::iter::Zip<std::vec::IntoIter<S>, std::vec::IntoIter<U>> {
    Vec::new().into_iter().zip(Vec::new())
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;
    use crate::dataset::iter::{IterDataset, interleave, laws};
    use crate::dataset::map::{MapDataset, Range};
    use crate::exec::Executor;

    /// Calls that are under way, and the most that were at a time.
    #[derive(Default)]
    struct Calls(Mutex<(usize, usize)>, Condvar);

    impl Calls {
        /// Returns once so many calls have been under way at a time, in this one or before it.
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

    /// A stream in order, whose elements no index finds.
    fn stream(len: i64) -> impl IterDataset<Item = i64> {
        Range::new(0, len).to_iter().limit(u64::MAX)
    }

    fn on_threads<T: Send + 'static>(ds: &impl IterDataset<Item = T>, threads: usize) -> Vec<Result<T>> {
        let run = Runtime::new(Executor::Threads(threads), None).unwrap();
        let (mut iter, mut cx) = (ds.iter(&run).unwrap(), run.cx());
        std::iter::from_fn(|| iter.next(&mut cx).transpose()).collect()
    }

    /// A function that waits until it runs on 4 threads at a time.
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
