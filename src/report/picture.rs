//! Data that a report keeps for a picture.

use serde::{Deserialize, Serialize};

use super::{LongWait, Report, why};
use crate::cx::{Recorder, Snapshot};
use crate::dataset::Stage;
use crate::report::ConsumerMeter;

/// Number of the longest waits that a picture shows.
const WAITS: usize = 64;

/// Records of a run, and other data of its picture.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Picture {
    /// Batches, chunks and intervals. A recording writes them separately, as they are added.
    #[serde(skip)]
    pub(super) records: Snapshot,
    /// The longest waits, the longest first, with names of records.
    pub(super) waits: Vec<LongWait>,
    /// Histogram of calls of `next`: nanoseconds, and the number of calls.
    pub(super) next: Vec<(u64, u64)>,
    /// Number of places of the buffer.
    pub(super) capacity: usize,
    /// Cells of the batches, if they were examined.
    #[serde(skip)]
    pub(super) cells: super::Cells,
}

impl Picture {
    pub(super) fn of(records: Snapshot, recorder: &Recorder, pipeline: &dyn Stage, meter: &ConsumerMeter) -> Self {
        let mut waits = recorder.longest_waits(WAITS);
        why::name_records(&mut waits, pipeline);
        let next = meter.latency.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
        Self { records, waits, next: next.collect(), capacity: meter.buffer.capacity, cells: super::Cells::default() }
    }
}

impl Report {
    /// Returns the report with `cells` of its batches.
    pub(crate) fn with_cells(mut self, cells: super::Cells) -> Self {
        std::sync::Arc::make_mut(&mut self.picture).cells = cells;
        self
    }

    /// Returns the longest waits of the picture, with names of records.
    pub(crate) fn named_waits(&self) -> &[LongWait] {
        &self.picture.waits
    }

    /// Returns the number of places of the buffer; 0 without a buffer.
    pub(crate) fn buffer(&self) -> usize {
        self.picture.capacity
    }

    /// Returns the seconds from the start of the recorder to the consumer's first call of `next`.
    pub(super) fn start_s(&self) -> f64 {
        let end = self.picture.records.batches.last().map_or(0.0, |last| last.given.as_secs_f64());
        (end - self.wall_s).max(0.0)
    }
}
