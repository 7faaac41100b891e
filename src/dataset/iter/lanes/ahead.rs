//! Lanes that others read, ahead of whoever asks for their elements.
//!
//! A lane is read in segments, one at a time: the next is asked for as soon as it is known where the present one ends. Their
//! sizes follow the clock; they shape nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lane::{LaneIter, LanePosition, Marked, Step};
use super::{ItemOf, Shared, StateOf};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::evaluate::{Aim, Incoming, caught, channel};
use crate::dataset::iter::open_lane::OpenLane;
use crate::error::{Error, Result};
use crate::exec::{Engine, Pool, Runtime};

/// Somebody who reads lanes, several at a time.
pub(super) trait LaneEvaluator<T, S>: Send {
    /// How large segments of one of so many lanes are to be.
    fn aim(&self, lanes: usize) -> Aim;

    /// Has a segment read.
    fn submit(&self, wanted: Wanted<S>) -> Incoming<LaneChunk<T, S>>;
}

/// A segment to read: so many elements of a lane.
pub(super) struct Wanted<S> {
    pub(super) lane: u64,
    pub(super) from: LanePosition<S>,
    /// What the chunk in front of it said, if one did.
    pub(super) after: Option<u64>,
    pub(super) quota: u64,
    /// When its first element is asked for, counted in elements.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "threads take what is asked for first")
    )]
    pub(super) due: u64,
}

/// What came of a segment, or of a part of it.
pub(super) struct LaneChunk<T, S> {
    pub(super) slots: Vec<Marked<T, S>>,
    pub(super) ending: Ending,
    pub(super) took: Duration,
    /// Bytes that it takes up where it is handed over; 0 where nothing is copied.
    pub(super) bytes: usize,
    /// By this whoever read it knows the lane again.
    pub(super) after: u64,
}

/// What is behind the elements of a chunk.
#[derive(Default)]
pub(super) enum Ending {
    /// More.
    #[default]
    Open,
    /// Nothing.
    Ended,
    /// What the lane cannot be read for.
    Failed(Error),
}

/// Every lane, as far as it has come.
pub(super) struct Ahead<T, S> {
    evaluator: Box<dyn LaneEvaluator<T, S>>,
    lanes: Vec<Option<Lane<T, S>>>,
    open: usize,
    /// Whether every lane has a segment under way, or had one.
    begun: bool,
    quota: u64,
    /// Elements that were asked for.
    asked: u64,
}

struct Lane<T, S> {
    /// Where those are who ask for elements.
    at: LanePosition<S>,
    /// Elements that have come.
    slots: std::vec::IntoIter<Marked<T, S>>,
    ending: Ending,
    /// Where those end.
    front: LanePosition<S>,
    after: Option<u64>,
    /// The segment behind them, and elements of it that are still to come.
    coming: Option<(Incoming<LaneChunk<T, S>>, u64)>,
}

impl<T, S> Lane<T, S> {
    fn new(at: LanePosition<S>) -> Self
    where
        S: Clone,
    {
        let front = at.clone();
        Self { at, slots: Vec::new().into_iter(), ending: Ending::Open, front, after: None, coming: None }
    }
}

impl<T, S: Clone> Ahead<T, S> {
    pub(super) fn new(evaluator: Box<dyn LaneEvaluator<T, S>>, count: u64) -> Self {
        let mut ahead = Self { evaluator, lanes: Vec::new(), open: 0, begun: false, quota: 1, asked: 0 };
        ahead.seek((0..count).map(|lane| Some(LanePosition::start(lane))).collect());
        ahead
    }

    /// Goes to other places; what is under way is called off.
    pub(super) fn seek(&mut self, lanes: Vec<Option<LanePosition<S>>>) {
        self.lanes = lanes.into_iter().map(|at| at.map(Lane::new)).collect();
        self.open = self.lanes.iter().flatten().count();
        self.begun = false;
    }

    pub(super) fn is_over(&self) -> bool {
        self.open == 0
    }

    pub(super) fn positions(&self) -> Vec<Option<LanePosition<S>>> {
        self.lanes.iter().map(|lane| Some(lane.as_ref()?.at.clone())).collect()
    }

    pub(super) fn position(&self, at: usize) -> Option<&LanePosition<S>> {
        self.lanes[at].as_ref().map(|lane| &lane.at)
    }

    /// The next element of lane `at`; `None` if that has ended.
    pub(super) fn next(&mut self, at: usize, stage: StageId, cx: &mut Cx) -> Option<Result<T>> {
        self.asked += 1;
        self.begin(at);
        loop {
            let lane = self.lanes[at].as_mut()?;
            if let Some((slot, mark)) = lane.slots.next() {
                lane.at.advance(mark);
                return Some(slot);
            }
            match std::mem::take(&mut lane.ending) {
                Ending::Open => {}
                Ending::Failed(error) => return Some(Err(error)),
                Ending::Ended => {
                    self.lanes[at] = None;
                    self.open -= 1;
                    return None;
                }
            }
            if let Err(error) = self.receive(at, stage, cx) {
                return Some(Err(error));
            }
        }
    }

    /// Asks for the first segment of every lane, in the order in which they are needed.
    fn begin(&mut self, first: usize) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for turn in 0..self.lanes.len() {
            self.ask((first + turn) % self.lanes.len(), turn as u64);
        }
    }

    /// Takes in what comes next of a lane, and asks for what is behind it.
    fn receive(&mut self, at: usize, stage: StageId, cx: &mut Cx) -> Result<()> {
        if self.lanes[at].as_ref().is_some_and(|lane| lane.coming.is_none()) {
            self.ask(at, 0);
        }
        let aim = self.evaluator.aim(self.lanes.len());
        let Some(lane) = &mut self.lanes[at] else { return Ok(()) };
        let Some((incoming, left)) = lane.coming.take() else { return Ok(()) };
        let chunk = incoming.receive(stage, cx)?;
        let len = chunk.slots.len() as u64;
        chunk.slots.iter().for_each(|(_, mark)| lane.front.advance(mark.clone()));
        lane.slots = chunk.slots.into_iter();
        (lane.ending, lane.after) = (chunk.ending, Some(chunk.after));
        if let Some(each_ns) = (chunk.took.as_nanos() as u64).checked_div(len) {
            self.quota = aim.next_size(self.quota, each_ns, chunk.bytes as u64 / len);
        }
        match (&lane.ending, left.saturating_sub(len)) {
            (Ending::Open, 0) => {
                let due = len.saturating_mul(self.open as u64);
                self.ask(at, due);
            }
            (Ending::Open, left) => lane.coming = Some((incoming, left)),
            _ => {}
        }
        Ok(())
    }

    /// Asks for the next segment of a lane, which is due in so many elements.
    fn ask(&mut self, at: usize, due: u64) {
        let Some(lane) = &mut self.lanes[at] else { return };
        let (from, after, quota) = (lane.front.clone(), lane.after, self.quota);
        let wanted = Wanted { lane: at as u64, from, after, quota, due: self.asked.saturating_add(due) };
        lane.coming = Some((self.evaluator.submit(wanted), quota));
    }
}

/// Who reads the lanes of a pass ahead of those who ask for their elements; nobody if they do it themselves.
pub(super) fn evaluator<L: OpenLane>(
    shared: &Arc<Shared<L>>,
    run: &Runtime,
) -> Option<Box<dyn LaneEvaluator<ItemOf<L>, StateOf<L>>>> {
    match run.engine() {
        Engine::Inline => None,
        Engine::Threads(pool) => {
            let (open, next_id) = (Arc::new(OpenLanes::new(usize::MAX)), AtomicU64::new(0));
            Some(Box::new(OnPool { shared: shared.clone(), pool: pool.clone(), open, next_id }))
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Workers(workers) => Some(super::remote::on_workers::<L>(run, workers, shared.stage)),
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Serving(served) => {
            super::remote::serve(shared, run, served);
            None
        }
    }
}

/// Lanes that are open between two segments, by the task that read each last.
pub(super) struct OpenLanes<K>(Mutex<HashMap<u64, (u64, K)>>, usize);

impl<K> OpenLanes<K> {
    /// At most so many.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::default(), most)
    }

    /// A lane as task `after` has left it, if that was the last that had it.
    pub(super) fn take(&self, lane: u64, after: Option<u64>) -> Option<K> {
        let (task, kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&lane)?;
        (Some(task) == after).then_some(kept)
    }

    /// Whether there is one of which `is` holds.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(super) fn any(&self, is: impl Fn(&K) -> bool) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().any(|(_, kept)| is(kept))
    }

    /// Keeps a lane as `task` leaves it, in place of the one that was not read for longest.
    pub(super) fn keep(&self, lane: u64, task: u64, kept: K) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = all.iter().map(|(&lane, (task, _))| (*task, lane)).min().filter(|_| all.len() >= self.1);
        let dropped = (oldest.and_then(|(_, lane)| all.remove(&lane)), all.insert(lane, (task, kept)));
        drop(all);
        drop(dropped);
    }
}

/// The threads of this process.
struct OnPool<L: OpenLane> {
    shared: Arc<Shared<L>>,
    pool: Arc<Pool>,
    open: Arc<OpenLanes<LaneIter<L>>>,
    next_id: AtomicU64,
}

impl<L: OpenLane> LaneEvaluator<ItemOf<L>, StateOf<L>> for OnPool<L> {
    fn aim(&self, lanes: usize) -> Aim {
        let time = share(Duration::from_millis(2), 2 * self.pool.threads(), lanes);
        Aim { time, slots: 1024, bytes: usize::MAX }
    }

    fn submit(&self, wanted: Wanted<StateOf<L>>) -> Incoming<LaneChunk<ItemOf<L>, StateOf<L>>> {
        let (outgoing, incoming) = channel();
        let (shared, open) = (self.shared.clone(), self.open.clone());
        let after = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.pool.submit(Box::new(move |open_pool| {
            // A stream that was moved or dropped wants nothing more.
            let go_on = || open_pool.get() && outgoing.is_wanted();
            if !go_on() {
                return;
            }
            let start = Instant::now();
            let mut cx = shared.run.cx_ahead();
            let (mut slots, lane) = (Vec::new(), wanted.lane);
            let ending = match open_lane(&shared, open.take(lane, wanted.after), wanted.from, &mut cx) {
                Err(error) => Ending::Failed(error),
                Ok(mut iter) => loop {
                    if !go_on() {
                        return;
                    }
                    if slots.len() as u64 == wanted.quota {
                        open.keep(lane, after, iter);
                        break Ending::Open;
                    }
                    match iter.step(&mut cx) {
                        Step::Next(slot) => slots.push(slot),
                        Step::Ended => break Ending::Ended,
                        Step::Failed(error) => break Ending::Failed(error),
                    }
                },
            };
            // The counts are in before anybody can see the elements.
            drop(cx);
            let _ = outgoing.chunks.send(Ok(LaneChunk { slots, ending, took: start.elapsed(), bytes: 0, after }));
        }));
        incoming
    }
}

/// Time for a segment: where there are many lanes, more of them are ready at a time than ranges would be.
pub(super) fn share(time: Duration, window: usize, lanes: usize) -> Duration {
    let share =
        time.saturating_mul(window.try_into().unwrap_or(u32::MAX)) / u32::try_from(lanes.max(1)).unwrap_or(u32::MAX);
    share.clamp(time.min(Duration::from_millis(1)), time)
}

/// A lane that is still open, or opened where it was.
pub(super) fn open_lane<L: OpenLane>(
    shared: &Arc<Shared<L>>,
    kept: Option<LaneIter<L>>,
    at: LanePosition<StateOf<L>>,
    cx: &mut Cx,
) -> Result<LaneIter<L>> {
    match kept {
        Some(lane) => Ok(lane),
        None => caught(|| LaneIter::open_at(shared, at, cx)),
    }
}
