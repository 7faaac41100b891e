//! Reading a segment of a lane: what is asked for, what comes of it, and what stays open in between.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lane::{LaneIter, LanePosition, Marked};
use super::{Shared, StateOf};
use crate::cx::{Cx, Made};
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::run::evaluate::{Aim, Incoming, caught};
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Somebody who reads lanes, several at a time.
pub(super) trait LaneEvaluator<T, S>: Send {
    /// Size that segments are to have, of one of so many lanes.
    fn aim(&self, lanes: usize) -> Aim;

    /// Has a segment read.
    fn submit(&self, wanted: Wanted<S>) -> Incoming<LaneChunk<T, S>>;
}

/// A segment to read: so many elements of a lane.
pub(super) struct Wanted<S> {
    pub(super) lane: u64,
    pub(super) from: LanePosition<S>,
    /// Index that the chunk in front of this one named, if one did.
    pub(super) after: Option<u64>,
    pub(super) quota: u64,
    /// The time at which its first element is asked for, counted in elements.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "threads take what is asked for first")
    )]
    pub(super) due: u64,
}

/// Elements of a segment, or of a part of it.
pub(super) struct LaneChunk<T, S> {
    pub(super) slots: Vec<Marked<T, S>>,
    pub(super) ending: Ending,
    pub(super) made: Made,
    /// By this whoever read it knows the lane again.
    pub(super) after: u64,
}

/// Cause that ends the elements of a chunk.
#[derive(Default)]
pub(super) enum Ending {
    /// More.
    #[default]
    Open,
    /// Nothing.
    Ended,
    /// The lane cannot be read, for this reason.
    Failed(Error),
}

/// Lanes that are open between two segments, by the task that read each last.
pub(super) struct OpenLanes<K>(Mutex<HashMap<u64, (u64, K)>>, usize);

impl<K> OpenLanes<K> {
    /// At most so many.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::default(), most)
    }

    /// A lane as task `after` has left it, if that was the last that had it.
    pub(super) fn take(&self, lane: u64, after: Option<u64>) -> Option<K> {
        let (task, kept) = self.0.locked().remove(&lane)?;
        (Some(task) == after).then_some(kept)
    }

    /// Whether there is one of which `is` holds.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(super) fn any(&self, is: impl Fn(&K) -> bool) -> bool {
        self.0.locked().values().any(|(_, kept)| is(kept))
    }

    /// Keeps a lane as `task` leaves it, in place of the one that was not read for longest.
    pub(super) fn keep(&self, lane: u64, task: u64, kept: K) {
        let mut all = self.0.locked();
        let oldest = all.iter().map(|(&lane, (task, _))| (*task, lane)).min().filter(|_| all.len() >= self.1);
        let dropped = (oldest.and_then(|(_, lane)| all.remove(&lane)), all.insert(lane, (task, kept)));
        drop(all);
        drop(dropped);
    }
}

/// Time for a segment: where there are many lanes, more of them are ready at a time than ranges would be.
pub(super) fn share(time: Duration, window: usize, lanes: usize) -> Duration {
    let share =
        time.saturating_mul(window.try_into().unwrap_or(u32::MAX)) / u32::try_from(lanes.max(1)).unwrap_or(u32::MAX);
    share.clamp(time.min(Duration::from_millis(1)), time)
}

/// A lane that is still open, or opened where it was.
pub(super) fn open_lane<L: OpenLane>(
    shared: &Arc<Shared<L>>,
    kept: Option<LaneIter<L>>,
    at: LanePosition<StateOf<L>>,
    cx: &mut Cx,
) -> Result<LaneIter<L>> {
    match kept {
        Some(lane) => Ok(lane),
        None => caught(|| LaneIter::open_at(shared, at, cx)),
    }
}
