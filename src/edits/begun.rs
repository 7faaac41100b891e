//! The changes of a stage that have begun.

/// The changes of a stage, each with its position of type `P` at the start of the change.
#[derive(Debug)]
pub(super) struct Begun<P> {
    /// First batch of each change.
    pub(super) due: Vec<u64>,
    /// Position of the stage at the start of each change that has begun.
    pub(super) at: Vec<P>,
}

default_as!(<P> Begun<P>, Self { due: Vec::new(), at: Vec::new() });

impl<P: Clone> Begun<P> {
    /// Begins the changes up to batch `number`, at `position`.
    pub(super) fn begin(&mut self, number: u64, position: &P) {
        let due = self.due.partition_point(|due| *due <= number);
        if due > self.at.len() {
            self.at.resize(due, position.clone());
        }
    }

    /// Returns the positions of the changes before batch `number` that have begun.
    pub(super) fn before(&self, number: u64) -> &[P] {
        &self.at[..self.due_before(number).min(self.at.len())]
    }

    /// Forgets the changes from batch `number` on.
    pub(super) fn forget(&mut self, number: u64) {
        self.at.truncate(self.before(number).len());
    }

    /// Returns the number of changes before batch `number`.
    pub(super) fn due_before(&self, number: u64) -> usize {
        self.due.partition_point(|due| *due < number)
    }

    /// Returns true if a change begins at batch `number`.
    pub(super) fn begins_at(&self, number: u64) -> bool {
        self.due.binary_search(&number).is_ok()
    }
}
