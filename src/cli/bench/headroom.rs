//! The measured loop over batches in memory: an upper bound on the gain from a perfect pipeline.

use std::time::Instant;

use crate::{BoxIter, Element, Load, Result};

use super::measure::{self, Feed, Run, Shape};

/// Total size of batches in memory at which no more are added.
const MOST_BYTES: usize = 256 << 20;

/// Runs the loop over the first batches of `dataset`, read in advance and repeated; `None` if there are none.
///
/// # Errors
/// Errors of the pipeline.
pub(super) fn run(dataset: BoxIter<Element>, shape: Shape<'_>) -> Result<Option<Run>> {
    let batches = first(dataset, shape.all())?;
    if batches.is_empty() {
        return Ok(None);
    }
    let mut cached = Feed::ready(batches.iter().cycle().cloned().map(Ok));
    // Batches in memory arrive evenly and never end.
    measure::run(Instant::now(), &mut cached, Shape { goes_on: false, ..shape }, |_| {}).map(Some)
}

fn first(dataset: BoxIter<Element>, most: u64) -> Result<Vec<Element>> {
    let mut batches = Vec::new();
    let mut bytes = 0;
    for batch in dataset.loader().build()? {
        let batch = batch?;
        bytes += batch.nbytes();
        batches.push(batch);
        if batches.len() as u64 >= most || bytes >= MOST_BYTES {
            break;
        }
    }
    Ok(batches)
}
