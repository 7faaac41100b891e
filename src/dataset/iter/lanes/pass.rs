//! A pass over lanes, in rounds.

use std::sync::Arc;

use super::ahead::Ahead;
use super::lane::{LaneIter, LanePosition, MARK_EVERY};
use super::state::{LanesState, Written};
use super::{ItemOf, Shared, StateOf};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::iter::{DatasetIterator, Position};
use crate::dataset::run::opaque::debug_name;
use crate::error::{Error, Result};

/// A pass over [`IterLanes`](super::IterLanes).
#[doc(hidden)]
pub struct IterLanesIter<L: OpenLane>(Rounds<Reader<L>, StateOf<L>>);

/// Reads lanes for a pass.
pub(super) trait ReadLanes<S>: Send {
    /// Type of an element.
    type Item: Send + 'static;
    /// True if the elements count as elements of the stage.
    const IS_COUNTED: bool;

    /// Returns the positions of all lanes; `None` for a lane that has ended.
    fn positions(&self) -> Vec<Option<LanePosition<S>>>;

    /// Returns the position of lane `at`; `None` if the lane has ended.
    fn position(&self, at: usize) -> Option<&LanePosition<S>>;

    /// Returns the next element of lane `at`; `None` if the lane has ended.
    fn next(&mut self, at: usize, stage: StageId, cx: &mut Cx) -> Option<Result<Self::Item>>;

    /// Returns true if all lanes have ended.
    fn is_over(&self) -> bool;

    /// Moves to other positions.
    ///
    /// # Errors
    /// A lane cannot be read at its position.
    fn seek(&mut self, lanes: Vec<Option<LanePosition<S>>>, cx: &mut Cx) -> Result<()>;
}

/// Elements of lanes in rounds, from the reader `R`.
pub(super) struct Rounds<R, S> {
    reader: R,
    state: LanesState<S>,
    count: u64,
    stage: StageId,
}

/// The reader of lanes.
enum Reader<L: OpenLane> {
    /// The consumer's thread reads. `None` is a lane that has ended.
    Inline(Arc<Shared<L>>, Vec<Option<LaneIter<L>>>),
    /// Threads or workers read ahead of the consumer.
    Ahead(Ahead<ItemOf<L>, StateOf<L>>),
}

impl<L: OpenLane> ReadLanes<StateOf<L>> for Reader<L> {
    type Item = ItemOf<L>;
    const IS_COUNTED: bool = true;

    fn positions(&self) -> Vec<Option<LanePosition<StateOf<L>>>> {
        match self {
            Self::Inline(_, lanes) => lanes.iter().map(|lane| Some(lane.as_ref()?.position.clone())).collect(),
            Self::Ahead(ahead) => ahead.positions(),
        }
    }

    fn position(&self, at: usize) -> Option<&LanePosition<StateOf<L>>> {
        match self {
            Self::Inline(_, lanes) => Some(&lanes[at].as_ref()?.position),
            Self::Ahead(ahead) => ahead.position(at),
        }
    }

    fn next(&mut self, at: usize, stage: StageId, cx: &mut Cx) -> Option<Result<ItemOf<L>>> {
        match self {
            Self::Ahead(ahead) => {
                // Begins the element for later stages. Stages inside the lanes count on their reader.
                cx.begin_element();
                ahead.next(at, stage, cx)
            }
            Self::Inline(_, lanes) => {
                let next = lanes[at].as_mut().and_then(|lane| lane.next(cx).transpose());
                if next.is_none() {
                    lanes[at] = None;
                }
                next
            }
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Inline(_, lanes) => lanes.iter().all(Option::is_none),
            Self::Ahead(ahead) => ahead.is_over(),
        }
    }

    fn seek(&mut self, lanes: Vec<Option<LanePosition<StateOf<L>>>>, cx: &mut Cx) -> Result<()> {
        match self {
            Self::Inline(shared, open) => {
                for (lane, at) in open.iter_mut().zip(lanes) {
                    *lane = at.map(|at| LaneIter::open_at(shared, at, cx)).transpose()?;
                }
            }
            Self::Ahead(ahead) => ahead.seek(lanes),
        }
        Ok(())
    }
}

impl<L: OpenLane> IterLanesIter<L> {
    pub(super) fn new(shared: Arc<Shared<L>>, ahead: Option<Ahead<ItemOf<L>, StateOf<L>>>) -> Self {
        let inline = || (0..shared.count).map(|lane| Some(LaneIter::new(&shared, lane))).collect();
        let reader = ahead.map_or_else(|| Reader::Inline(shared.clone(), inline()), Reader::Ahead);
        Self(Rounds::new(reader, shared.count, shared.stage))
    }
}

impl<R: ReadLanes<S>, S: Clone> Rounds<R, S> {
    /// Starts with the first round.
    pub(super) fn new(reader: R, count: u64, stage: StageId) -> Self {
        let lanes = (0..count).map(|lane| Some(LanePosition::start(lane))).collect();
        Self { reader, state: Written { next_lane: 0, lanes }.into(), count, stage }
    }

    /// Returns the next element of the lane whose turn is next; `None` if the lane has ended.
    fn take(&mut self, cx: &mut Cx) -> Option<Result<R::Item>> {
        let at = self.state.next_lane();
        if self.reader.position(at).is_none() {
            self.state.turn();
            return None;
        }
        let next = self.reader.next(at, self.stage, cx);
        match (&next, self.reader.position(at)) {
            (Some(Ok(_)), Some(position)) if position.skip > 0 => self.state.turn(),
            _ => self.state.turn_to(self.reader.positions()),
        }
        next
    }

    fn check(&self, state: &LanesState<S>) -> Result<()> {
        let count = self.count;
        let fits = |(lane, at): (u64, &LanePosition<S>)| {
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
                "lane {lane} of {count} cannot be {} elements after a mark and {} after its start in stream {}",
                at.skip, at.given, at.mark.dataset
            )),
            _ => Error::state(format!(
                "the state has {} lanes and is at lane {}, but the pipeline has {count} lanes",
                all.len(),
                state.next_lane()
            )),
        })
    }
}

impl<R: ReadLanes<S>, S: Position> DatasetIterator for Rounds<R, S> {
    type Item = R::Item;
    type State = LanesState<S>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        // The end of a lane becomes known at its next turn.
        while !self.reader.is_over() {
            if let Some(next) = self.take(cx) {
                if R::IS_COUNTED {
                    cx.produced(self.stage, u64::from(next.is_ok()), 0);
                }
                return next.map(Some);
            }
        }
        Ok(None)
    }

    fn state(&self) -> Self::State {
        self.state.clone()
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.check(&state).map_err(|e| cx.blame(self.stage, "lanes", e))?;
        self.reader.seek(state.lanes(), cx)?;
        self.state = state;
        Ok(())
    }
}

impl<L: OpenLane> DatasetIterator for IterLanesIter<L> {
    type Item = ItemOf<L>;
    type State = LanesState<StateOf<L>>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        self.0.next(cx)
    }

    fn state(&self) -> Self::State {
        self.0.state()
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.0.restore(state, cx)
    }
}

debug_name!(IterLanesIter<L: OpenLane>);
