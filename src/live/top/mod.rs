//! Live view of a pass on this machine: a socket that only the same user may open, with a frame per second per viewer.

mod meeting;
mod server;

use serde::{Deserialize, Serialize};

pub(crate) use self::meeting::{Place, connect, places};
pub(crate) use self::server::TopServer;
use crate::cx::Interval;
use crate::report::Report;

/// A frame: the state of a pass at a point in time, sent as a line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    /// Process id; `command` is the command line of the process.
    pub(crate) pid: u32,
    pub(crate) command: String,
    /// Seconds since the view was offered; `waiting_s` is the current wait of the consumer, if the consumer is waiting.
    pub(crate) at_s: f64,
    pub(crate) waiting_s: Option<f64>,
    /// Capacity of the buffer.
    pub(crate) buffer: usize,
    pub(crate) report: Report,
    /// Intervals of the run since the previous frame; in the first frame, intervals of the last minute.
    #[serde(rename = "stretches")]
    pub(crate) intervals: Vec<Interval>,
}

/// Environment variable that makes every pass of a process offer its view, if set to 1.
const ASKED: &str = "GRISTMILL_TOP";

/// Returns true if the environment variable enables views.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(ASKED).is_some_and(|value| !value.is_empty() && value != "0")
}
