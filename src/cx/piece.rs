//! Pieces of chunks, and the slowest of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A piece of a chunk of root elements: those that were evaluated together, one where they are dear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The first index.
    pub index: u64,
    /// Indices.
    pub count: u64,
    /// Time that it took.
    pub took: Duration,
    /// The stage whose own work was most of that, by id, where that was measured.
    pub stage: Option<u32>,
}

/// Pieces that one thread evaluates: the slowest of them.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    slowest: Option<Piece>,
    /// The stage whose work was the longest that was measured since the last piece, and its nanoseconds.
    dearest: (u32, u64),
}

impl Pieces {
    /// A stage has worked for so long.
    #[inline]
    pub(crate) fn worked(&mut self, stage: usize, ns: u64) {
        if ns > self.dearest.1 {
            self.dearest = (stage as u32, ns);
        }
    }

    /// Elements `index` and so forth, `count` of them, took so long.
    pub(crate) fn took(&mut self, index: u64, count: u64, took: Duration) {
        let (stage, ns) = std::mem::take(&mut self.dearest);
        if self.slowest.is_none_or(|slowest| slowest.took < took) {
            let stage = (u128::from(ns) * 2 >= took.as_nanos()).then_some(stage);
            self.slowest = Some(Piece { index, count, took, stage });
        }
    }

    /// Takes out the slowest.
    pub(crate) fn take(&mut self) -> Option<Piece> {
        self.slowest.take()
    }
}
