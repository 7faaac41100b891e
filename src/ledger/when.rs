//! The batches of a logged run in which records were.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::log::RunLog;
use super::replay::Replay;
use crate::dataset::{IterDataset, Segment, Tracer};
use crate::error::Result;
use crate::keys::KeySource;

/// A place of a record in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Seen {
    /// Number of the batch, from 0.
    pub step: u64,
    /// Number of the row in the global batch.
    pub row: u64,
    /// The part of the row, with its cells.
    pub segment: Segment,
}

/// Returns every place of `records` in the batches `steps` of the run of `log`, whose pipeline is `dataset`. A record is the stage id of its
/// source, and its number in the source.
///
/// Plans all of these batches. Records without keys are evaluated if rows depend on lengths or on dropped elements.
///
/// # Errors
/// As [`which`](super::which).
pub fn when<D: IterDataset>(
    dataset: &D,
    log: &RunLog,
    records: &HashSet<(usize, u64)>,
    steps: Range<u64>,
    keys: Option<Arc<dyn KeySource>>,
) -> Result<Vec<Seen>> {
    let mut replay = Replay::start(dataset, log, keys)?;
    let (tracer, mut seen) = (Tracer::new(dataset), Vec::new());
    if steps.is_empty() {
        return Ok(seen);
    }
    replay.go_to(steps.start)?;
    while replay.next() < steps.end {
        let (step, before) = (replay.next(), replay.state());
        let Some(batch) = replay.plan(false)? else { break };
        if !tracer.has(&batch, records) {
            continue;
        }
        let Some(batch) = replay.plan_again(before)? else { break };
        for row in tracer.rows(&batch) {
            let found = row.segments.into_iter().filter(|segment| records.contains(&(segment.stage, segment.index)));
            seen.extend(found.map(|segment| Seen { step, row: row.row, segment }));
        }
    }
    Ok(seen)
}
