//! The sizes of batches that edits change.

use std::sync::Arc;

use super::RunEdits;
use crate::cx::Cx;

/// The size of the batches of a stage, which edits may change.
#[derive(Clone, Debug)]
pub(crate) struct BatchSize {
    edits: Arc<RunEdits>,
    /// The stage id.
    stage: usize,
    /// Size without edits.
    size: usize,
}

impl BatchSize {
    /// Makes the size of the batches of `stage`: `size`, unless edits change it.
    pub(crate) fn new(edits: &Arc<RunEdits>, stage: usize, size: usize) -> Self {
        Self { edits: edits.clone(), stage, size }
    }

    /// Returns the size of the batch that is being made.
    #[inline]
    pub(crate) fn now(&self, cx: &Cx) -> usize {
        self.edits.batch_size(self.stage, cx.batch()).unwrap_or(self.size)
    }
}
