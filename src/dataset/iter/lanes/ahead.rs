//! Lanes that threads or workers read ahead of the consumer.
//!
//! A lane is read in segments, one at a time. The next segment is requested as soon as the end of the current segment
//! is known. Segment sizes depend on measured times and never shape the data.

use super::evaluate::{Ending, LaneChunk, LaneEvaluator, Wanted};
use super::lane::{LanePosition, Marked};
use crate::cx::{Cx, StageId, Taken};
use crate::dataset::run::evaluate::Incoming;
use crate::error::Result;

/// All lanes, with their progress.
pub(super) struct Ahead<T, S> {
    evaluator: Box<dyn LaneEvaluator<T, S>>,
    lanes: Vec<Option<Lane<T, S>>>,
    open: usize,
    /// True if the first segment of every lane has been requested.
    begun: bool,
    quota: u64,
    /// Elements that the consumer has requested.
    asked: u64,
}

struct Lane<T, S> {
    /// Position of the consumer.
    at: LanePosition<S>,
    /// Elements that have arrived.
    slots: std::vec::IntoIter<Marked<T, S>>,
    ending: Ending,
    /// Position after the elements that have arrived.
    front: LanePosition<S>,
    after: Option<u64>,
    /// The segment after `front`, and the number of its elements that have not arrived.
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

    /// Moves to other positions and cancels the segments under way.
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

    /// Returns the next element of lane `at`; `None` if the lane has ended.
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

    /// Requests the first segment of every lane, in the order in which the consumer needs them.
    fn begin(&mut self, first: usize) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for turn in 0..self.lanes.len() {
            self.ask((first + turn) % self.lanes.len(), turn as u64);
        }
    }

    /// Receives the next chunk of a lane and requests the segment after it.
    fn receive(&mut self, at: usize, stage: StageId, cx: &mut Cx) -> Result<()> {
        if self.lanes[at].as_ref().is_some_and(|lane| lane.coming.is_none()) {
            self.ask(at, 0);
        }
        let aim = self.evaluator.aim(self.lanes.len());
        let Some(lane) = &mut self.lanes[at] else { return Ok(()) };
        let Some((incoming, left)) = lane.coming.take() else { return Ok(()) };
        let (chunk, wait) = incoming.receive(cx);
        let chunk = chunk?;
        let len = chunk.slots.len() as u64;
        // The index of a lane's element in the whole stream is unknown here. The count of requests takes its place.
        let first = self.asked - 1;
        cx.taken(stage, &Taken { first, count: len, made: chunk.made, wait, idle: true, holds_up: false });
        chunk.slots.iter().for_each(|(_, mark)| lane.front.advance(mark.clone()));
        lane.slots = chunk.slots.into_iter();
        (lane.ending, lane.after) = (chunk.ending, Some(chunk.after));
        if let Some(each_ns) = (chunk.made.took().as_nanos() as u64).checked_div(len) {
            self.quota = aim.next_size(self.quota, each_ns, chunk.made.bytes / len);
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

    /// Requests the next segment of a lane. The consumer needs it after `due` more elements.
    fn ask(&mut self, at: usize, due: u64) {
        let Some(lane) = &mut self.lanes[at] else { return };
        let (from, after, quota) = (lane.front.clone(), lane.after, self.quota);
        let wanted = Wanted { lane: at as u64, from, after, quota, due: self.asked.saturating_add(due) };
        lane.coming = Some((self.evaluator.submit(wanted), quota));
    }
}
