//! Groups of elements that were evaluated together, and the slowest group of a thread.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Root elements of a chunk that were evaluated together. An expensive element is a separate group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ElementGroup {
    /// The first index.
    pub(crate) index: u64,
    /// Number of indices.
    pub(crate) count: u64,
    /// Time to evaluate the group.
    pub(crate) took: Duration,
    /// Id of the stage whose own work took most of the time, if it was measured.
    pub(crate) stage: Option<u32>,
}

/// The slowest of the groups that a thread evaluates.
#[derive(Debug, Default)]
pub(crate) struct SlowestGroup {
    slowest: Option<ElementGroup>,
    /// The stage with the longest measured work since the last group, and its nanoseconds.
    dearest: (u32, u64),
}

impl SlowestGroup {
    /// Records that a stage has worked for `ns` nanoseconds.
    #[inline]
    pub(crate) fn worked(&mut self, stage: usize, ns: u64) {
        if ns > self.dearest.1 {
            self.dearest = (stage as u32, ns);
        }
    }

    /// Records a group of `count` elements, starting at `index`.
    pub(crate) fn took(&mut self, index: u64, count: u64, took: Duration) {
        let (stage, ns) = std::mem::take(&mut self.dearest);
        if self.slowest.is_none_or(|slowest| slowest.took < took) {
            let stage = (u128::from(ns) * 2 >= took.as_nanos()).then_some(stage);
            self.slowest = Some(ElementGroup { index, count, took, stage });
        }
    }

    /// Removes and returns the slowest group.
    pub(crate) fn take(&mut self) -> Option<ElementGroup> {
        self.slowest.take()
    }
}
