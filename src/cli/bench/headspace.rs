//! The same loop over batches that lie in memory: what a perfect pipeline would gain.

use std::time::Instant;

use crate::{BoxIter, Element, Load, Result};

use super::measure::{self, Feed, Run, Shape};

/// Batches are kept up to this size all together.
const MOST_BYTES: usize = 256 << 20;

/// The loop over the first batches of `dataset`, which are read before and repeat; `None` if there are none.
///
/// # Errors
/// Errors of the pipeline.
pub(super) fn run(dataset: BoxIter<Element>, shape: Shape<'_>) -> Result<Option<Run>> {
    let batches = first(dataset, shape.all())?;
    if batches.is_empty() {
        return Ok(None);
    }
    let mut cached = Feed::ready(batches.iter().cycle().cloned().map(Ok));
    // Batches that lie in memory come evenly, and never end.
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
