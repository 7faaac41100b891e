//! Digest of the rows of a run, computed in a separate pass: hashing rows would slow the measured runs down.

use serde::{Deserialize, Serialize};

use super::measure::Shape;
use crate::cli::hash::Rows;
use crate::element::OrderHash;
use crate::{BoxIter, Element, Loader, Result};

/// Result of a pass over the batches of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digested {
    pub(super) rows: Rows,
    pub(super) batches: u64,
    pub(super) order_hash: OrderHash,
}

/// Hashes the batches of a run, including the warm-up, and their rows.
///
/// # Errors
/// Errors of the batches.
pub(super) fn run(loader: &mut Loader<BoxIter<Element>>, shape: Shape<'_>) -> Result<Digested> {
    let mut digested = Digested::default();
    while digested.batches < shape.all() {
        let Some(batch) = loader.next().transpose()? else { break };
        digested.order_hash.update(&batch);
        digested.rows.take(digested.batches, &batch, loader.rows());
        digested.batches += 1;
    }
    Ok(digested)
}
