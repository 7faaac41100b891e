//! What a report keeps to be drawn.

use super::{LongWait, why};
use crate::cx::{Recorder, Snapshot};
use crate::dataset::Stage;
use crate::report::ConsumerMeter;

/// Waits that a picture tells of: the longest.
const WAITS: usize = 64;

/// Records of a run, and what else a picture of it shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) records: Snapshot,
    /// The longest waits, the longest first, with names of records.
    pub(super) waits: Vec<LongWait>,
    /// Seconds after the start of the recorder at which the consumer asked for the first batch.
    pub(super) start_s: f64,
    /// Nanoseconds of calls of `next`, and how many took so long.
    pub(super) next: Vec<(u64, u64)>,
    /// Places of the buffer.
    pub(super) capacity: usize,
}

impl Picture {
    pub(super) fn of(recorder: &Recorder, pipeline: &dyn Stage, meter: &ConsumerMeter, wall_s: f64) -> Self {
        let records = recorder.snapshot();
        let mut waits = recorder.longest_waits(WAITS);
        why::name_records(&mut waits, pipeline);
        let end = records.batches.last().map_or(0.0, |last| last.given.as_secs_f64());
        let next = meter.latency.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
        Self { waits, start_s: (end - wall_s).max(0.0), next: next.collect(), capacity: meter.capacity, records }
    }
}
