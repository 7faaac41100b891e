//! The numbers of batches that a pass plans ahead of the consumer.

use std::sync::{Arc, Mutex};

use super::Edits;
use crate::sync::Locked;

/// The edits of a run, shared by the loader and its pass.
#[derive(Debug, Default)]
pub(crate) struct RunEdits {
    edits: Mutex<Edits>,
}

impl RunEdits {
    /// Shares `edits`.
    pub(crate) fn new(edits: Edits) -> Self {
        Self { edits: Mutex::new(edits) }
    }

    /// Returns the number of batches to leave out before batch `number` of the run.
    fn skipped_at(&self, number: u64) -> u64 {
        self.edits.locked().skipped_at(number)
    }
}

/// Counts the batches that a pass plans ahead, and returns their numbers in the run.
///
/// A batch that is left out has the number of the next delivered batch.
#[derive(Debug)]
pub(crate) struct BatchNumbers {
    edits: Arc<RunEdits>,
    /// Number of the next planned batch, and the batches with this number that are left out first. `None` before the
    /// first batch of a pass.
    next: Option<(u64, u64)>,
}

impl BatchNumbers {
    /// Counts the batches of a run with these edits.
    pub(crate) fn new(edits: Arc<RunEdits>) -> Self {
        Self { edits, next: None }
    }

    /// Forgets all batches, because the pass has moved.
    pub(crate) fn forget(&mut self) {
        self.next = None;
    }

    /// Returns the number of the next planned batch. `present` is the number of the batch that the consumer waits for.
    pub(crate) fn next(&mut self, present: u64) -> u64 {
        let edits = &self.edits;
        self.next.get_or_insert_with(|| (present, edits.skipped_at(present))).0
    }

    /// Counts the next planned batch.
    pub(crate) fn advance(&mut self) {
        self.next = self.next.map(|(number, left)| match left.checked_sub(1) {
            Some(left) => (number, left),
            None => (number + 1, self.edits.skipped_at(number + 1)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_is_left_out_has_the_number_of_the_next_delivered_batch() {
        let edits = Edits::default().skip(3, 2).skip(5, 1);
        let mut numbers = BatchNumbers::new(Arc::new(RunEdits::new(edits)));
        let mut take = |present| {
            let number = numbers.next(present);
            numbers.advance();
            number
        };
        assert_eq!([(); 8].map(|()| take(2)), [2, 3, 3, 3, 4, 5, 5, 6]);
        numbers.forget();
        assert_eq!(numbers.next(5), 5);
    }
}
