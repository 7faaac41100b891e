//! What a report keeps to be drawn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{LongWait, Report, why};
use crate::cx::{Recorder, Snapshot};
use crate::dataset::Stage;
use crate::report::ConsumerMeter;

/// Waits that a picture tells of: the longest.
const WAITS: usize = 64;

/// Records of a run, and what else a picture of it shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Picture {
    /// Batches, chunks and stretches. Where a run is recorded they are written one by one.
    #[serde(skip)]
    pub(super) records: Snapshot,
    /// The longest waits, the longest first, with names of records.
    pub(super) waits: Vec<LongWait>,
    /// Nanoseconds of calls of `next`, and how many took so long.
    pub(super) next: Vec<(u64, u64)>,
    /// Places of the buffer.
    pub(super) capacity: usize,
    /// Cells of the batches, if anybody has looked at them.
    #[cfg(any(feature = "cli", feature = "python"))]
    #[serde(skip)]
    pub(super) cells: super::Cells,
}

impl Picture {
    pub(super) fn of(records: Snapshot, recorder: &Recorder, pipeline: &dyn Stage, meter: &ConsumerMeter) -> Self {
        let mut waits = recorder.longest_waits(WAITS);
        why::name_records(&mut waits, pipeline);
        let next = meter.latency.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
        Self { records, waits, next: next.collect(), capacity: meter.capacity, ..Self::default() }
    }
}

impl Report {
    /// The same with cells of its batches.
    #[cfg(any(feature = "cli", feature = "python"))]
    pub(crate) fn with_cells(mut self, cells: super::Cells) -> Self {
        Arc::make_mut(&mut self.picture).cells = cells;
        self
    }

    /// The longest waits that a picture tells of, with names of records.
    pub(crate) fn named_waits(&self) -> &[LongWait] {
        &self.picture.waits
    }

    /// Places of the buffer, 0 without one.
    #[cfg(all(feature = "top", target_os = "linux"))]
    pub(crate) fn buffer(&self) -> usize {
        self.picture.capacity
    }

    /// Seconds after the start of the recorder at which the consumer asked for the first batch.
    pub(super) fn start_s(&self) -> f64 {
        let end = self.picture.records.batches.last().map_or(0.0, |last| last.given.as_secs_f64());
        (end - self.wall_s).max(0.0)
    }
}
