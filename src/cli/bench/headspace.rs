//! The same loop over batches that lie in memory: what a perfect pipeline would gain.

use std::time::Instant;

use crate::{BoxIter, Element, IterDataset, Result};

use super::measure::{self, Shape};

/// Batches are kept up to this size all together.
const MOST_BYTES: usize = 256 << 20;

/// Batches per second of the loop over the first batches of `dataset`, which are read before and repeat.
///
/// # Errors
/// Those of the pipeline; if it is empty.
pub(super) fn batches_per_s(dataset: BoxIter<Element>, shape: Shape) -> Result<Option<f64>> {
    let batches = first(dataset, shape.warmup + shape.steps)?;
    if batches.is_empty() {
        return Ok(None);
    }
    let mut cached = batches.iter().cycle().cloned().map(Ok);
    let run = measure::run(Instant::now(), &mut cached, shape, |_| {})?;
    Ok(Some(run.batches_per_s()))
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
