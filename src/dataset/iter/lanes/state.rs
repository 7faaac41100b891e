//! Positions of passes over lanes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lane::LanePosition;

/// Position of an [`IterLanesIter`](super::IterLanesIter): in JSON the lane whose turn is next, and the position of each, or `null`
/// once it has been found at its end.
///
/// In memory it is where they all were some time ago, and how many turns ago that was: so it costs the same to take one for
/// every element, however many lanes there are.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    from = "Written<S>",
    into = "Written<S>",
    bound(serialize = "S: Clone + Serialize", deserialize = "S: Deserialize<'de>")
)]
pub struct LanesState<S> {
    next_lane: usize,
    then: Arc<Vec<Option<LanePosition<S>>>>,
    /// Turns since then; each open lane has gone on by an element in each of its own, and no mark was put.
    turns: usize,
}

/// The form in which a position is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "S: Serialize", deserialize = "S: Deserialize<'de>"))]
pub(super) struct Written<S> {
    pub(super) next_lane: usize,
    pub(super) lanes: Vec<Option<LanePosition<S>>>,
}

impl<S> LanesState<S> {
    /// The lane whose turn is next.
    pub fn next_lane(&self) -> usize {
        self.next_lane
    }

    /// Number of lanes.
    pub(super) fn count(&self) -> usize {
        self.then.len()
    }

    /// One turn on, of a lane that has given an element and stands at no mark.
    pub(super) fn turn(&mut self) {
        self.turns += 1;
        self.next_lane = self.behind();
    }

    /// One turn on, behind which lanes are there.
    pub(super) fn turn_to(&mut self, lanes: Vec<Option<LanePosition<S>>>) {
        *self = Written { next_lane: self.behind(), lanes }.into();
    }

    fn behind(&self) -> usize {
        (self.next_lane + 1) % self.count().max(1)
    }
}

impl<S: Clone> LanesState<S> {
    /// Position of each lane; `None` once it has been found at its end.
    pub fn lanes(&self) -> Vec<Option<LanePosition<S>>> {
        let count = self.count();
        let one = |(lane, at): (usize, &Option<LanePosition<S>>)| {
            // The last turn was that of the lane in front of the next.
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
