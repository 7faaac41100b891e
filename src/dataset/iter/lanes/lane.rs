//! One lane, read on one thread.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{ItemOf, Shared, StateOf};
use crate::cx::Cx;
use crate::dataset::iter::DatasetIterator;
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::evaluate::caught;
use crate::error::{Error, Result};

/// Elements between two marks of a lane: part of the format of its states. With a mark at every element, each would have to
/// travel with its own.
pub(super) const MARK_EVERY: u64 = 64;

/// Position of a lane: so many elements behind a mark. There is a mark at every 64th element and behind every error, whoever
/// reads the lane and in whatever segments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "S: Serialize", deserialize = "S: Deserialize<'de>"))]
pub struct LanePosition<S> {
    /// Elements of the lane that are behind it, and errors.
    pub given: u64,
    /// The last mark.
    #[serde(with = "shared")]
    pub mark: Arc<LaneMark<S>>,
    /// Elements since.
    pub skip: u64,
}

/// A place in a lane from which it can be read on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneMark<S> {
    /// The dataset that is read, or is to be opened next.
    pub dataset: u64,
    /// Position of that dataset, if it is open.
    pub state: Option<S>,
}

/// A mark stands in many states of a pass.
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
    /// The start of lane `lane`.
    pub(super) fn start(lane: u64) -> Self {
        Self { given: 0, mark: Arc::new(LaneMark { dataset: lane, state: None }), skip: 0 }
    }

    /// One element or error on. `mark` is what stands behind it, if something does.
    pub(super) fn advance(&mut self, mark: Option<Arc<LaneMark<S>>>) {
        self.given += 1;
        self.skip += 1;
        if let Some(mark) = mark {
            (self.mark, self.skip) = (mark, 0);
        }
    }

    /// Whether a mark stands behind the next element, or error.
    pub(super) fn is_due(skip: u64, is_error: bool) -> bool {
        is_error || skip + 1 >= MARK_EVERY
    }
}

/// An element or an error, and the mark behind it, if there is one.
pub(super) type Marked<T, S> = (Result<T>, Option<Arc<LaneMark<S>>>);

/// Next event in a lane.
pub(super) enum Step<T, S> {
    Next(Marked<T, S>),
    Ended,
    /// The lane cannot be read on.
    Failed(Error),
}

/// A lane that is open.
pub(super) struct LaneIter<L: OpenLane> {
    shared: Arc<Shared<L>>,
    /// The dataset that is open, or is opened next.
    dataset: u64,
    open: Option<L::Iter>,
    position: LanePosition<StateOf<L>>,
}

impl<L: OpenLane> LaneIter<L> {
    /// Lane `lane` at its start.
    pub(super) fn new(shared: &Arc<Shared<L>>, lane: u64) -> Self {
        Self { shared: shared.clone(), dataset: lane, open: None, position: LanePosition::start(lane) }
    }

    /// A lane where it was: what has been read since its last mark is read again.
    ///
    /// # Errors
    /// The lane cannot be opened or read there.
    pub(super) fn open_at(shared: &Arc<Shared<L>>, at: LanePosition<StateOf<L>>, cx: &mut Cx) -> Result<Self> {
        let dataset = at.mark.dataset;
        let mut lane = Self { shared: shared.clone(), dataset, open: None, position: at };
        if let Some(state) = lane.position.mark.state.clone() {
            let mut iter = lane.open_dataset(cx)?.ok_or_else(|| {
                Error::state(format!("stream {dataset} was open, and now it is dropped or not there"))
            })?;
            shared.lanes.enter(dataset, shared.stage, cx, |cx| iter.restore(state, cx))?;
            lane.open = Some(iter);
        }
        for n in 0..lane.position.skip {
            if lane.read(cx)?.is_none() {
                let skip = lane.position.skip;
                return Err(Error::state(format!(
                    "a lane ends {n} elements behind its state, and was {skip} behind it"
                )));
            }
        }
        Ok(lane)
    }

    /// Position of the lane.
    pub(super) fn position(&self) -> &LanePosition<StateOf<L>> {
        &self.position
    }

    /// The next element, or `None` at the end.
    ///
    /// # Errors
    /// Errors of its datasets, also in opening one: that is passed over then.
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

    /// Puts a mark here.
    pub(super) fn mark(&mut self) -> &LaneMark<StateOf<L>> {
        let state = self.open.as_ref().map(DatasetIterator::state);
        let position = &mut self.position;
        (position.mark, position.skip) = (Arc::new(LaneMark { dataset: self.dataset, state }), 0);
        &position.mark
    }

    /// The same for whoever reads ahead: a panic is an error there, and the end of this iterator.
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
                // One that cannot be opened is behind it, too.
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

    /// The next dataset of the lane.
    fn behind(&self, dataset: u64) -> u64 {
        dataset.saturating_add(self.shared.count)
    }

    fn open_dataset(&self, cx: &mut Cx) -> Result<Option<L::Iter>> {
        let Shared { lanes, run, .. } = &*self.shared;
        if self.dataset < lanes.count() { lanes.open(self.dataset, run, cx) } else { Ok(None) }
    }
}
