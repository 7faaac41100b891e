//! A pass over lanes: round by round.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use super::lane::{LaneIter, LanePosition, MARK_EVERY};
use super::{ItemOf, Shared, StateOf};
use crate::cx::Cx;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::iter::opaque::debug_name;
use crate::dataset::iter::open_lane::OpenLane;
use crate::error::{Error, Result};

/// A pass over [`IterLanes`](super::IterLanes).
pub struct IterLanesIter<L: OpenLane> {
    shared: Arc<Shared<L>>,
    reader: Reader<L>,
    next_lane: usize,
}

/// Where an [`IterLanesIter`] is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "S: Serialize", deserialize = "S: Deserialize<'de>"))]
pub struct LanesState<S> {
    /// The lane whose turn is next.
    pub next_lane: usize,
    /// Where each lane is; `None` once it has been found at its end.
    pub lanes: Vec<Option<LanePosition<S>>>,
}

/// Who reads lanes.
enum Reader<L: OpenLane> {
    /// Whoever asks for an element. `None` is a lane that has ended.
    Inline(Vec<Option<LaneIter<L>>>),
    /// Others, ahead of those who ask.
    Ahead(Ahead<ItemOf<L>, StateOf<L>>),
}

impl<L: OpenLane> IterLanesIter<L> {
    pub(super) fn new(shared: Arc<Shared<L>>, ahead: Option<Ahead<ItemOf<L>, StateOf<L>>>) -> Self {
        let inline = || (0..shared.count).map(|lane| Some(LaneIter::new(&shared, lane))).collect();
        let reader = ahead.map_or_else(|| Reader::Inline(inline()), Reader::Ahead);
        Self { shared, reader, next_lane: 0 }
    }

    /// The next element of the lane whose turn it is; `None` if that has ended.
    fn take(&mut self, cx: &mut Cx) -> Option<Result<ItemOf<L>>> {
        let at = self.next_lane;
        self.next_lane = (at + 1) % self.shared.count as usize;
        match &mut self.reader {
            Reader::Ahead(ahead) => {
                // For the stages behind: those in front count elsewhere.
                cx.begin_element();
                ahead.next(at, self.shared.stage, cx)
            }
            Reader::Inline(lanes) => {
                let next = lanes[at].as_mut()?.next(cx).transpose();
                if next.is_none() {
                    lanes[at] = None;
                }
                next
            }
        }
    }

    fn is_over(&self) -> bool {
        match &self.reader {
            Reader::Inline(lanes) => lanes.iter().all(Option::is_none),
            Reader::Ahead(ahead) => ahead.is_over(),
        }
    }

    fn check(&self, state: &LanesState<StateOf<L>>) -> Result<()> {
        let count = self.shared.count;
        let fits = |(lane, at): (u64, &LanePosition<StateOf<L>>)| {
            at.mark.dataset % count == lane && at.skip < MARK_EVERY && at.skip <= at.given
        };
        let lanes = (0..).zip(&state.lanes).filter_map(|(lane, at)| Some((lane, at.as_ref()?)));
        if state.lanes.len() as u64 == count && (state.next_lane as u64) < count && lanes.clone().all(fits) {
            return Ok(());
        }
        Err(match lanes.clone().find(|&lane| !fits(lane)) {
            Some((lane, at)) if state.lanes.len() as u64 == count => Error::state(format!(
                "lane {lane} of {count} cannot be {} of {} elements behind stream {}",
                at.skip, at.given, at.mark.dataset
            )),
            _ => Error::state(format!(
                "the state is of {} lanes at lane {}, the pipeline has {count}",
                state.lanes.len(),
                state.next_lane
            )),
        })
    }
}

impl<L: OpenLane> DatasetIterator for IterLanesIter<L> {
    type Item = ItemOf<L>;
    type State = LanesState<StateOf<L>>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        // A lane is only known to have ended once its turn has come again.
        while !self.is_over() {
            if let Some(next) = self.take(cx) {
                cx.produced(self.shared.stage, u64::from(next.is_ok()), 0);
                return next.map(Some);
            }
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        let lanes = match &self.reader {
            Reader::Inline(lanes) => lanes.iter().map(|lane| Some(lane.as_ref()?.position().clone())).collect(),
            Reader::Ahead(ahead) => ahead.positions(),
        };
        LanesState { next_lane: self.next_lane, lanes }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.check(&state).map_err(|e| cx.blame(self.shared.stage, "lanes", e))?;
        let LanesState { next_lane, lanes } = state;
        match &mut self.reader {
            Reader::Inline(open) => {
                for (lane, at) in open.iter_mut().zip(lanes) {
                    *lane = at.map(|at| LaneIter::open_at(&self.shared, at, cx)).transpose()?;
                }
            }
            Reader::Ahead(ahead) => ahead.seek(lanes),
        }
        self.next_lane = next_lane;
        Ok(())
    }
}

debug_name!(IterLanesIter<L: OpenLane>);
