//! Requests of commands for an engine.

use std::sync::OnceLock;

use super::{Cluster, no_engine};
use crate::Result;
use crate::loader::Backend;
use crate::spec::Pipeline;

/// Request for workers of a pipeline file on other machines.
pub(crate) struct Request {
    /// The cluster that has them.
    pub(crate) cluster: Cluster,
    /// Workers at first and at most.
    pub(crate) workers: (usize, usize),
    /// Threads of each.
    pub(crate) threads: usize,
    /// Bytes of what is under way, ready or in use here.
    pub(crate) ram_budget: u64,
    pub(crate) pipeline: Pipeline,
    /// The stages of the pipeline, a line each.
    pub(crate) stages: Vec<String>,
}

/// Prepares workers on other machines, for a loader.
pub(crate) type Prepare = fn(Request) -> Result<Box<dyn Backend>>;

static PREPARE: OnceLock<Prepare> = OnceLock::new();

/// Has `prepare` answer requests of commands.
#[cfg(feature = "python")]
pub(crate) fn set_engine(prepare: Prepare) {
    let _ = PREPARE.set(prepare);
}

/// Prepares what is asked for.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where there is no engine here; and errors of the engine.
pub(crate) fn prepare(request: Request) -> Result<Box<dyn Backend>> {
    PREPARE.get().ok_or_else(no_engine)?(request)
}
