//! Progress of a pass: the batch that it makes, and the edits that have taken effect.

use super::Cx;

/// Positions up to which later stages have read the stages that edits change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadPositions {
    /// Position of the edited mix after the last element that later stages have read.
    pub(crate) mix: u64,
    /// The next index of each border. Empty if no edit excludes records.
    pub(crate) borders: Vec<u64>,
}

impl ReadPositions {
    /// Advances the next index of border number `border` to `next`, if it is earlier.
    fn note(&mut self, border: usize, next: u64) {
        if self.borders.len() <= border {
            self.borders.resize(border + 1, 0);
        }
        self.borders[border] = self.borders[border].max(next);
    }
}

/// Progress of a pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Number of the batch that is being made.
    batch: u64,
    /// Number of edits that have taken effect.
    changes: u64,
    /// Positions up to which later stages have read the edited stages.
    read: ReadPositions,
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

    /// Returns the number of edits that have taken effect. Edits that leave out batches do not count.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.progress.changes
    }

    /// Sets the number of edits that have taken effect.
    #[inline]
    pub(crate) fn set_changes(&mut self, changes: u64) {
        self.progress.changes = changes;
    }

    /// Returns the positions up to which later stages have read the edited stages.
    #[inline]
    pub(crate) fn read(&self) -> &ReadPositions {
        &self.progress.read
    }

    /// Notes that later stages have read the edited mix up to `position`. Elements that are read again change nothing.
    #[inline]
    pub(crate) fn note_read(&mut self, position: u64) {
        self.progress.read.mix = self.progress.read.mix.max(position);
    }

    /// Notes that later stages have read border number `border` up to index `next`. Indices that are read again change nothing.
    #[inline]
    pub(crate) fn note_border(&mut self, border: usize, next: u64) {
        self.progress.read.note(border, next);
    }

    /// Notes that later stages have read the edited stages up to `positions`.
    #[inline]
    pub(crate) fn note_all_read(&mut self, positions: &ReadPositions) {
        self.note_read(positions.mix);
        for (border, next) in positions.borders.iter().enumerate() {
            self.note_border(border, *next);
        }
    }

    /// Sets the positions up to which later stages have read the edited stages.
    #[inline]
    pub(crate) fn set_read(&mut self, positions: ReadPositions) {
        self.progress.read = positions;
    }
}
