//! Positions of passes over lanes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lane::LanePosition;

/// Position of an [`IterLanesIter`](super::IterLanesIter).
///
/// In JSON: the lane whose turn is next, and the position of each lane, or `null` after the lane was found at its end.
/// In memory: the positions at an earlier time, and the number of turns since. The cost of a state per element is
/// therefore independent of the number of lanes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    from = "Written<S>",
    into = "Written<S>",
    bound(serialize = "S: Clone + Serialize", deserialize = "S: Deserialize<'de>")
)]
#[doc(hidden)]
pub struct LanesState<S> {
    next_lane: usize,
    then: Arc<Vec<Option<LanePosition<S>>>>,
    /// Turns since then. Each open lane advanced by an element in each of its turns, and no mark was set.
    turns: usize,
}

/// Serialized form of a position.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "S: Serialize", deserialize = "S: Deserialize<'de>"))]
pub(super) struct Written<S> {
    pub(super) next_lane: usize,
    pub(super) lanes: Vec<Option<LanePosition<S>>>,
}

impl<S> LanesState<S> {
    /// Returns the lane whose turn is next.
    pub fn next_lane(&self) -> usize {
        self.next_lane
    }

    /// Returns the number of lanes.
    pub(super) fn count(&self) -> usize {
        self.then.len()
    }

    /// Counts a turn in which a lane yielded an element and reached no mark.
    pub(super) fn turn(&mut self) {
        self.turns += 1;
        self.next_lane = self.behind();
    }

    /// Counts a turn after which the lanes have the positions `lanes`.
    pub(super) fn turn_to(&mut self, lanes: Vec<Option<LanePosition<S>>>) {
        *self = Written { next_lane: self.behind(), lanes }.into();
    }

    fn behind(&self) -> usize {
        (self.next_lane + 1) % self.count().max(1)
    }
}

impl<S: Clone> LanesState<S> {
    /// Returns the position of each lane; `None` after the lane was found at its end.
    pub fn lanes(&self) -> Vec<Option<LanePosition<S>>> {
        let count = self.count();
        let one = |(lane, at): (usize, &Option<LanePosition<S>>)| {
            // The last turn was the turn of the lane before the next lane.
            let ago = (self.next_lane % count + count - 1 - lane) % count;
            let turns = self.turns.saturating_sub(ago).div_ceil(count) as u64;
            at.clone().map(|at| LanePosition { given: at.given + turns, skip: at.skip + turns, ..at })
        };
        self.then.iter().enumerate().map(one).collect()
    }
}

impl<S> From<Written<S>> for LanesState<S> {
    fn from(Written { next_lane, lanes }: Written<S>) -> Self {
        Self { next_lane, then: Arc::new(lanes), turns: 0 }
    }
}

impl<S: Clone> From<LanesState<S>> for Written<S> {
    fn from(state: LanesState<S>) -> Self {
        Self { next_lane: state.next_lane, lanes: state.lanes() }
    }
}
