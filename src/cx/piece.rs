//! Pieces of chunks, and the slowest piece.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Root elements of a chunk that were evaluated together. An expensive element is a separate piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The first index.
    pub index: u64,
    /// Number of indices.
    pub count: u64,
    /// Time to evaluate the piece.
    pub took: Duration,
    /// Id of the stage whose own work took most of the time, if it was measured.
    pub stage: Option<u32>,
}

/// The slowest of the pieces that one thread evaluates.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    slowest: Option<Piece>,
    /// The stage with the longest measured work since the last piece, and its nanoseconds.
    dearest: (u32, u64),
}

impl Pieces {
    /// Records that a stage has worked for `ns` nanoseconds.
    #[inline]
    pub(crate) fn worked(&mut self, stage: usize, ns: u64) {
        if ns > self.dearest.1 {
            self.dearest = (stage as u32, ns);
        }
    }

    /// Records a piece of `count` elements, starting at `index`.
    pub(crate) fn took(&mut self, index: u64, count: u64, took: Duration) {
        let (stage, ns) = std::mem::take(&mut self.dearest);
        if self.slowest.is_none_or(|slowest| slowest.took < took) {
            let stage = (u128::from(ns) * 2 >= took.as_nanos()).then_some(stage);
            self.slowest = Some(Piece { index, count, took, stage });
        }
    }

    /// Removes and returns the slowest piece.
    pub(crate) fn take(&mut self) -> Option<Piece> {
        self.slowest.take()
    }
}
