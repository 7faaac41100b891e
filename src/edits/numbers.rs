//! The numbers of batches that a pass plans ahead of the consumer.

use std::sync::Arc;

use super::RunEdits;
use crate::cx::Cx;

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

    /// Begins the next planned batch, whose number `cx` then has. Before, `cx` has the number of the batch that the consumer
    /// waits for.
    pub(crate) fn begin(&mut self, cx: &mut Cx) {
        let (edits, present) = (&self.edits, cx.batch());
        let (number, _) = *self.next.get_or_insert_with(|| (present, edits.skipped_at(present)));
        edits.begin(number, cx);
    }

    /// Ends the batch that began last.
    pub(crate) fn end(&mut self, cx: &Cx) {
        self.next = self.next.map(|(number, left)| match left.checked_sub(1) {
            Some(left) => (number, left),
            None => {
                self.edits.end(number, cx);
                (number + 1, self.edits.skipped_at(number + 1))
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Edits;

    #[test]
    fn a_batch_that_is_left_out_has_the_number_of_the_next_delivered_batch() {
        let edits = Edits::default().skip(3, 2).skip(5, 1);
        let mut numbers = BatchNumbers::new(Arc::new(RunEdits::new(edits, crate::edits::EditedStages::default())));
        let mut cx = Cx::default();
        let mut take = || {
            numbers.begin(&mut cx);
            numbers.end(&cx);
            cx.batch()
        };
        assert_eq!([(); 9].map(|()| take()), [0, 1, 2, 3, 3, 3, 4, 5, 5]);
        numbers.forget();
        numbers.begin(&mut cx);
        assert_eq!(cx.batch(), 5);
    }
}
