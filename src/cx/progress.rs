//! Progress of a pass: the batch that it makes, and the edits that have taken effect.

use super::Cx;

/// Progress of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Number of the batch that is being made.
    batch: u64,
    /// Number of changes of a mix that have taken effect.
    changes: u64,
    /// Position of the edited mix after the last element that later stages have read.
    read: u64,
}

impl Cx {
    /// Returns the number of the batch that is being made or planned. It counts the batches that the run delivers. A batch
    /// that an edit leaves out has the number of the next delivered batch.
    #[inline]
    pub(crate) fn batch(&self) -> u64 {
        self.progress.batch
    }

    /// Sets the number of the batch that is made or planned next.
    #[inline]
    pub(crate) fn begin_batch(&mut self, number: u64) {
        self.progress.batch = number;
    }

    /// Runs `plan` for a batch ahead of the batch that is being made.
    pub(crate) fn planning_ahead<R>(&mut self, plan: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.progress.batch;
        let result = plan(self);
        self.progress.batch = before;
        result
    }

    /// Returns the number of changes of a mix that have taken effect.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.progress.changes
    }

    /// Sets the number of changes of a mix that have taken effect.
    #[inline]
    pub(crate) fn set_changes(&mut self, changes: u64) {
        self.progress.changes = changes;
    }

    /// Returns the position of the edited mix after the last element that later stages have read.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        self.progress.read
    }

    /// Notes that later stages have read the edited mix up to `position`. Elements that are read again change nothing.
    #[inline]
    pub(crate) fn note_read(&mut self, position: u64) {
        self.progress.read = self.progress.read.max(position);
    }

    /// Sets the position of the edited mix after the last element that later stages have read.
    #[inline]
    pub(crate) fn set_read(&mut self, position: u64) {
        self.progress.read = position;
    }
}
