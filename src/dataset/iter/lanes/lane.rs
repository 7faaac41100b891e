//! One lane, read on one thread.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ItemOf, Shared, StateOf};
use crate::cx::Cx;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::evaluate::caught;
use crate::error::{Error, Result};

/// Elements between two marks of a lane; part of the format of its states. With a mark at every element, each element
/// would have to be sent with its mark.
pub(super) const MARK_EVERY: u64 = 64;

/// Position of a lane: a number of elements after a mark.
///
/// A mark follows every error, and every 64th element since the last mark. Marks do not depend on the reader or on
/// its segments.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "S: Serialize", deserialize = "S: Deserialize<'de>"))]
pub struct LanePosition<S> {
    /// Elements and errors of the lane before this position.
    pub given: u64,
    /// The last mark.
    #[serde(with = "shared")]
    pub mark: Arc<LaneMark<S>>,
    /// Elements since the last mark.
    pub skip: u64,
}

/// A place in a lane from which reading can continue.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneMark<S> {
    /// The open dataset, or the next dataset to open.
    pub dataset: u64,
    /// Position of that dataset, if it is open.
    pub state: Option<S>,
}

/// Serializes a mark through its [`Arc`]: many states of a pass share a mark.
mod shared {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<T: Serialize, Z: Serializer>(value: &Arc<T>, serializer: Z) -> Result<Z::Ok, Z::Error> {
        T::serialize(value, serializer)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, Z: Deserializer<'de>>(from: Z) -> Result<Arc<T>, Z::Error> {
        T::deserialize(from).map(Arc::new)
    }
}

impl<S> LanePosition<S> {
    /// Returns the start of lane `lane`.
    pub(super) fn start(lane: u64) -> Self {
        Self { given: 0, mark: Arc::new(LaneMark { dataset: lane, state: None }), skip: 0 }
    }

    /// Advances by an element or an error. `mark` is the mark after it, if any.
    pub(super) fn advance(&mut self, mark: Option<Arc<LaneMark<S>>>) {
        self.given += 1;
        self.skip += 1;
        if let Some(mark) = mark {
            (self.mark, self.skip) = (mark, 0);
        }
    }

    /// Returns true if a mark follows the next element or error.
    pub(super) fn is_due(skip: u64, is_error: bool) -> bool {
        is_error || skip + 1 >= MARK_EVERY
    }
}

/// An element or an error, and the mark after it, if any.
pub(super) type Marked<T, S> = (Result<T>, Option<Arc<LaneMark<S>>>);

/// Next event in a lane.
pub(super) enum Step<T, S> {
    Next(Marked<T, S>),
    Ended,
    /// The lane cannot be read further.
    Failed(Error),
}

/// An open lane.
pub(super) struct LaneIter<L: OpenLane> {
    shared: Arc<Shared<L>>,
    /// The open dataset, or the next dataset to open.
    dataset: u64,
    open: Option<L::Iter>,
    pub(super) position: LanePosition<StateOf<L>>,
}

impl<L: OpenLane> LaneIter<L> {
    /// Opens lane `lane` at its start.
    pub(super) fn new(shared: &Arc<Shared<L>>, lane: u64) -> Self {
        Self { shared: shared.clone(), dataset: lane, open: None, position: LanePosition::start(lane) }
    }

    /// Opens a lane at a position. Reads the elements since the last mark again.
    ///
    /// # Errors
    /// The lane cannot be opened or read there.
    pub(super) fn open_at(shared: &Arc<Shared<L>>, at: LanePosition<StateOf<L>>, cx: &mut Cx) -> Result<Self> {
        let dataset = at.mark.dataset;
        let mut lane = Self { shared: shared.clone(), dataset, open: None, position: at };
        if let Some(state) = lane.position.mark.state.clone() {
            let mut iter = lane.open_dataset(cx)?.ok_or_else(|| {
                Error::state(format!("stream {dataset} was open at the checkpoint, but is now dropped or missing"))
            })?;
            shared.lanes.enter(dataset, shared.stage, cx, |cx| iter.restore(state, cx))?;
            lane.open = Some(iter);
        }
        for n in 0..lane.position.skip {
            if lane.read(cx)?.is_none() {
                let skip = lane.position.skip;
                return Err(Error::state(format!(
                    "the lane ends {n} elements after its mark, but the state is {skip} elements after it"
                )));
            }
        }
        Ok(lane)
    }

    /// Returns the next element, or `None` at the end.
    ///
    /// # Errors
    /// Errors of the lane's datasets, also of opening a dataset. A dataset that cannot be opened is then skipped.
    pub(super) fn next(&mut self, cx: &mut Cx) -> Result<Option<ItemOf<L>>> {
        let next = self.read(cx);
        if !matches!(next, Ok(None)) {
            let due = LanePosition::<()>::is_due(self.position.skip, next.is_err());
            self.position.advance(None);
            if due {
                self.mark();
            }
        }
        next
    }

    /// Sets a mark at the current position.
    pub(super) fn mark(&mut self) -> &LaneMark<StateOf<L>> {
        let state = self.open.as_ref().map(DatasetIterator::state);
        let position = &mut self.position;
        (position.mark, position.skip) = (Arc::new(LaneMark { dataset: self.dataset, state }), 0);
        &position.mark
    }

    /// Returns the next event, for reading ahead. A panic becomes an error and ends this iterator.
    pub(super) fn step(&mut self, cx: &mut Cx) -> Step<ItemOf<L>, StateOf<L>> {
        let mut returned = false;
        let next = caught(|| {
            let next = self.next(cx);
            returned = true;
            next
        });
        let mark = (self.position.skip == 0).then(|| self.position.mark.clone());
        match next {
            Ok(Some(element)) => Step::Next((Ok(element), mark)),
            Ok(None) => Step::Ended,
            Err(panic) if !returned => Step::Failed(panic.index(self.position.given)),
            Err(error) => Step::Next((Err(error), mark)),
        }
    }

    fn read(&mut self, cx: &mut Cx) -> Result<Option<ItemOf<L>>> {
        loop {
            let dataset = self.dataset;
            if let Some(iter) = &mut self.open {
                let Shared { lanes, stage, .. } = &*self.shared;
                if let Some(element) = lanes.enter(dataset, *stage, cx, |cx| iter.next(cx))? {
                    return Ok(Some(element));
                }
                self.open = None;
                self.dataset = self.behind(dataset);
            } else if dataset < self.shared.lanes.count() {
                // Advances before opening, so that a dataset that cannot be opened is skipped.
                self.dataset = self.behind(dataset);
                let opened = self.shared.lanes.open(dataset, &self.shared.run, cx)?;
                if opened.is_some() {
                    (self.dataset, self.open) = (dataset, opened);
                }
            } else {
                return Ok(None);
            }
        }
    }

    /// Returns the dataset after `dataset` in the lane.
    fn behind(&self, dataset: u64) -> u64 {
        dataset.saturating_add(self.shared.count)
    }

    fn open_dataset(&self, cx: &mut Cx) -> Result<Option<L::Iter>> {
        let Shared { lanes, run, .. } = &*self.shared;
        if self.dataset < lanes.count() { lanes.open(self.dataset, run, cx) } else { Ok(None) }
    }
}
