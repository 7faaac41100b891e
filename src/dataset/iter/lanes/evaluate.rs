//! Reading a segment of a lane: the request, the result, and the lanes that stay open in between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lane::{LaneIter, LanePosition, Marked};
use super::{Shared, StateOf};
use crate::cx::{Cx, Evaluation};
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::evaluate::{Aim, Incoming, caught};
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Reads several lanes at a time.
pub(super) trait LaneEvaluator<T, S>: Send {
    /// Returns the target size of a segment if there are `lanes` lanes.
    fn aim(&self, lanes: usize) -> Aim;

    /// Submits a segment for reading.
    fn submit(&self, wanted: Wanted<S>) -> Incoming<LaneChunk<T, S>>;
}

/// A segment to read: `quota` elements of a lane.
pub(super) struct Wanted<S> {
    pub(super) lane: u64,
    pub(super) from: LanePosition<S>,
    /// `after` of the lane's previous chunk, if any.
    pub(super) after: Option<u64>,
    pub(super) quota: u64,
    /// Count of consumed elements at which the first element of the segment is needed.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "threads serve requests in order")
    )]
    pub(super) due: u64,
}

/// Elements of a segment, or of a part of it.
pub(super) struct LaneChunk<T, S> {
    pub(super) slots: Vec<Marked<T, S>>,
    pub(super) ending: Ending,
    pub(super) made: Evaluation,
    /// Identifies the state in which the reader left the lane.
    pub(super) after: u64,
}

/// State of the lane after a chunk.
#[derive(Default)]
pub(super) enum Ending {
    /// The lane has more elements.
    #[default]
    Open,
    /// The lane has ended.
    Ended,
    /// The lane cannot be read, because of this error.
    Failed(Error),
}

/// Lanes that stay open between two segments, each with the task that read it last.
pub(super) struct OpenLanes<K>(Mutex<HashMap<u64, (u64, K)>>, usize);

impl<K> OpenLanes<K> {
    /// Keeps at most `most` lanes open.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::default(), most)
    }

    /// Takes the lane as task `after` has left it, if this task was the last to read it.
    pub(super) fn take(&self, lane: u64, after: Option<u64>) -> Option<K> {
        let (task, kept) = self.0.locked().remove(&lane)?;
        (Some(task) == after).then_some(kept)
    }

    /// Returns true if `is` holds for an open lane.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(super) fn any(&self, is: impl Fn(&K) -> bool) -> bool {
        self.0.locked().values().any(|(_, kept)| is(kept))
    }

    /// Keeps a lane as `task` leaves it. If too many lanes are open, drops the least recently read lane.
    pub(super) fn keep(&self, lane: u64, task: u64, kept: K) {
        let mut all = self.0.locked();
        let oldest = all.iter().map(|(&lane, (task, _))| (*task, lane)).min().filter(|_| all.len() >= self.1);
        let dropped = (oldest.and_then(|(_, lane)| all.remove(&lane)), all.insert(lane, (task, kept)));
        drop(all);
        drop(dropped);
    }
}

/// Returns the time for a segment. It decreases with the number of lanes, because more segments are then ready at once.
pub(super) fn share(time: Duration, window: usize, lanes: usize) -> Duration {
    let share =
        time.saturating_mul(window.try_into().unwrap_or(u32::MAX)) / u32::try_from(lanes.max(1)).unwrap_or(u32::MAX);
    share.clamp(time.min(Duration::from_millis(1)), time)
}

/// Returns the lane that is still open, or opens the lane at its position.
pub(super) fn open_lane<L: OpenLane>(
    shared: &Arc<Shared<L>>,
    kept: Option<LaneIter<L>>,
    at: LanePosition<StateOf<L>>,
    cx: &mut Cx,
) -> Result<LaneIter<L>> {
    if let Some(lane) = kept { Ok(lane) } else { caught(|| LaneIter::open_at(shared, at, cx)) }
}
