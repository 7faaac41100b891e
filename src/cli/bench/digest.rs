//! The digest of the rows that a run takes, in a pass of its own: hashing rows one by one would slow the runs down.

use serde::{Deserialize, Serialize};

use super::measure::Shape;
use crate::cli::hash::Rows;
use crate::element::OrderHash;
use crate::{BoxIter, Element, Loader, Result};

/// What a pass over the batches of a run delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digested {
    pub(super) rows: Rows,
    pub(super) batches: u64,
    pub(super) order_hash: OrderHash,
}

/// Hashes the batches of a run, those of the warm-up too, and their rows.
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
