//! The records of a batch of a logged run.

use std::sync::Arc;

use serde::Serialize;

use super::log::RunLog;
use super::replay::Replay;
use crate::checkpoint::Checkpoint;
use crate::dataset::{IterDataset, Lineage, Tracer};
use crate::error::{Error, Result};
use crate::keys::KeySource;

/// A batch of a logged run, and its records.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Number of the batch, from 0.
    pub step: u64,
    /// Number of batches before the logged position from which the batch was planned.
    pub planned_from: u64,
    /// The records of each row.
    pub rows: Vec<Lineage>,
    /// The position before the batch, from which a loader delivers it again.
    #[serde(skip)]
    pub before: Checkpoint,
}

/// Returns the records of global batch number `step`, from 0, of the run of `log`, whose pipeline is `dataset`.
///
/// Plans at most 1,000 batches. Records without keys are evaluated if rows depend on lengths or on dropped elements.
///
/// # Errors
/// [`ErrorKind::State`](crate::ErrorKind::State) if a source file or a stage has changed since the run.
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if the run has no such batch, or if the records of rows are unknown: see
/// [`Loader::lineage`](crate::Loader::lineage).
pub fn which<D: IterDataset>(dataset: &D, log: &RunLog, step: u64, keys: Option<Arc<dyn KeySource>>) -> Result<Step> {
    let mut replay = Replay::start(dataset, log, keys)?;
    replay.go_to(step)?;
    let before = replay.checkpoint()?;
    let Some(batch) = replay.plan(true)? else {
        return Err(Error::config(format!("the stream ends after {step} batches, so there is no batch {step}")));
    };
    let rows = Tracer::new(dataset).rows(&batch);
    Ok(Step { step, planned_from: log.before(step)?.entry.at_batch, rows, before })
}
