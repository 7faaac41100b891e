//! Lanes that others read, ahead of whoever asks for their elements.
//!
//! A lane is read in segments, one at a time: the next is asked for as soon as it is known where the present one ends. Their
//! sizes follow the clock; they shape nothing.

use super::evaluate::{Ending, LaneChunk, LaneEvaluator, Wanted};
use super::lane::{LanePosition, Marked};
use crate::cx::{Cx, StageId, Taken};
use crate::dataset::run::evaluate::Incoming;
use crate::error::Result;

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
    /// Position of those who ask for elements.
    at: LanePosition<S>,
    /// Elements that have come.
    slots: std::vec::IntoIter<Marked<T, S>>,
    ending: Ending,
    /// Position behind the elements that have come.
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
        let (chunk, wait) = incoming.receive(cx);
        let chunk = chunk?;
        let len = chunk.slots.len() as u64;
        // Of a lane no index is known in what all of them make.
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

    /// Asks for the next segment of a lane, which is due in so many elements.
    fn ask(&mut self, at: usize, due: u64) {
        let Some(lane) = &mut self.lanes[at] else { return };
        let (from, after, quota) = (lane.front.clone(), lane.after, self.quota);
        let wanted = Wanted { lane: at as u64, from, after, quota, due: self.asked.saturating_add(due) };
        lane.coming = Some((self.evaluator.submit(wanted), quota));
    }
}
