//! The wait report: does the consumer wait, which stage makes it wait, and what would remove it.

mod meter;

pub(crate) use meter::ConsumerMeter;

use std::sync::Arc;

use crate::cx::Recorder;
use crate::dataset::Stage;
use crate::exec::{Executor, Runtime};

/// Where the time of a run went.
#[derive(Clone, Debug)]
pub struct Report {
    /// Share of its time that the consumer spent waiting, 0 to 1.
    pub consumer_wait_share: f64,
}

impl Report {
    pub(crate) fn new(
        _pipeline: &dyn Stage,
        _executor: Executor,
        _recorder: &Arc<Recorder>,
        _run: &Runtime,
        meter: &ConsumerMeter,
    ) -> Self {
        Self { consumer_wait_share: meter.wait_share() }
    }
}
