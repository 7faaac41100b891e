//! Requests from commands to an engine.

use std::sync::OnceLock;

use super::{Cluster, no_engine};
use crate::Result;
use crate::loader::Backend;
use crate::spec::Pipeline;

/// Request for workers of a pipeline file on other machines.
pub(crate) struct Request {
    /// Cluster on which the workers run.
    pub(crate) cluster: Cluster,
    /// Initial and maximum number of workers.
    pub(crate) workers: (usize, usize),
    /// Threads of each worker.
    pub(crate) threads: usize,
    /// Maximum bytes of data in transit, ready or in use on this machine.
    pub(crate) ram_budget: u64,
    pub(crate) pipeline: Pipeline,
    /// Stages of the pipeline, one per line.
    pub(crate) stages: Vec<String>,
}

/// Function that prepares workers on other machines for a loader.
pub(crate) type Prepare = fn(Request) -> Result<Box<dyn Backend>>;

static PREPARE: OnceLock<Prepare> = OnceLock::new();

/// Registers `prepare` as the engine for requests of commands.
pub(crate) fn set_engine(prepare: Prepare) {
    let _ = PREPARE.set(prepare);
}

/// Prepares the requested workers.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if no engine is registered; errors of the engine.
pub(crate) fn prepare(request: Request) -> Result<Box<dyn Backend>> {
    PREPARE.get().ok_or_else(no_engine)?(request)
}
