//! The live view of a pass for people of this machine: a socket that only the same user may open, with a frame a second for each who looks.

mod meeting;
mod server;

use serde::{Deserialize, Serialize};

pub(crate) use self::meeting::{Place, connect, places};
pub(crate) use self::server::TopServer;
use crate::cx::Stretch;
use crate::report::Report;

/// A frame: what is shown of a pass at a time. It is a line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    /// The process, and its command line.
    pub(crate) pid: u32,
    pub(crate) command: String,
    /// Seconds since the view was offered, and for which the consumer has been waiting now, if it is.
    pub(crate) at_s: f64,
    pub(crate) waiting_s: Option<f64>,
    /// Places of the buffer.
    pub(crate) buffer: usize,
    pub(crate) report: Report,
    /// Stretches of the run since the frame before; of the last minute in the first.
    pub(crate) stretches: Vec<Stretch>,
}

/// Variable that has every pass of a process offer its view: 1.
const ASKED: &str = "GRISTMILL_TOP";

/// Whether the environment asks for views.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(ASKED).is_some_and(|value| !value.is_empty() && value != "0")
}
