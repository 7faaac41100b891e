//! A pass over lanes: round by round.

use std::sync::Arc;

use super::ahead::Ahead;
use super::lane::{LaneIter, LanePosition, MARK_EVERY};
use super::state::{LanesState, Written};
use super::{ItemOf, Shared, StateOf};
use crate::cx::Cx;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::opaque::debug_name;
use crate::error::{Error, Result};

/// A pass over [`IterLanes`](super::IterLanes).
pub struct IterLanesIter<L: OpenLane> {
    shared: Arc<Shared<L>>,
    reader: Reader<L>,
    state: LanesState<StateOf<L>>,
}

/// The reader of lanes.
enum Reader<L: OpenLane> {
    /// The thread that asks for an element reads. `None` is a lane that has ended.
    Inline(Vec<Option<LaneIter<L>>>),
    /// Others, ahead of those who ask.
    Ahead(Ahead<ItemOf<L>, StateOf<L>>),
}

impl<L: OpenLane> Reader<L> {
    fn positions(&self) -> Vec<Option<LanePosition<StateOf<L>>>> {
        match self {
            Self::Inline(lanes) => lanes.iter().map(|lane| Some(lane.as_ref()?.position().clone())).collect(),
            Self::Ahead(ahead) => ahead.positions(),
        }
    }

    fn position(&self, at: usize) -> Option<&LanePosition<StateOf<L>>> {
        match self {
            Self::Inline(lanes) => Some(lanes[at].as_ref()?.position()),
            Self::Ahead(ahead) => ahead.position(at),
        }
    }
}

impl<L: OpenLane> IterLanesIter<L> {
    pub(super) fn new(shared: Arc<Shared<L>>, ahead: Option<Ahead<ItemOf<L>, StateOf<L>>>) -> Self {
        let inline = || (0..shared.count).map(|lane| Some(LaneIter::new(&shared, lane))).collect();
        let reader = ahead.map_or_else(|| Reader::Inline(inline()), Reader::Ahead);
        let lanes = (0..shared.count).map(|lane| Some(LanePosition::start(lane))).collect();
        Self { shared, reader, state: Written { next_lane: 0, lanes }.into() }
    }

    /// The next element of the lane whose turn it is; `None` if that has ended.
    fn take(&mut self, cx: &mut Cx) -> Option<Result<ItemOf<L>>> {
        let at = self.state.next_lane();
        if self.reader.position(at).is_none() {
            self.state.turn();
            return None;
        }
        let next = match &mut self.reader {
            Reader::Ahead(ahead) => {
                // For the stages behind: those in front count elsewhere.
                cx.begin_element();
                ahead.next(at, self.shared.stage, cx)
            }
            Reader::Inline(lanes) => {
                let next = lanes[at].as_mut().and_then(|lane| lane.next(cx).transpose());
                if next.is_none() {
                    lanes[at] = None;
                }
                next
            }
        };
        match (&next, self.reader.position(at)) {
            (Some(Ok(_)), Some(position)) if position.skip > 0 => self.state.turn(),
            _ => self.state.turn_to(self.reader.positions()),
        }
        next
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
        let all = state.lanes();
        let lanes = (0..).zip(&all).filter_map(|(lane, at)| Some((lane, at.as_ref()?)));
        let is_whole = all.len() as u64 == count;
        if is_whole && (state.next_lane() as u64) < count && lanes.clone().all(fits) {
            return Ok(());
        }
        Err(match lanes.clone().find(|&lane| !fits(lane)) {
            Some((lane, at)) if is_whole => Error::state(format!(
                "lane {lane} of {count} cannot be {} of {} elements behind stream {}",
                at.skip, at.given, at.mark.dataset
            )),
            _ => Error::state(format!(
                "the state is of {} lanes at lane {}, the pipeline has {count}",
                all.len(),
                state.next_lane()
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
        self.state.clone()
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.check(&state).map_err(|e| cx.blame(self.shared.stage, "lanes", e))?;
        let lanes = state.lanes();
        match &mut self.reader {
            Reader::Inline(open) => {
                for (lane, at) in open.iter_mut().zip(lanes) {
                    *lane = at.map(|at| LaneIter::open_at(&self.shared, at, cx)).transpose()?;
                }
            }
            Reader::Ahead(ahead) => ahead.seek(lanes),
        }
        self.state = state;
        Ok(())
    }
}

debug_name!(IterLanesIter<L: OpenLane>);
