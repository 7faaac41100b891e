//! The view that a loop of Python has of its pass: times around those of the loader, and batches as they are handed over.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::item::Item;
use crate::cx::Cause;
use crate::dataset::BoxIter;
use crate::report::{Cells, ConsumerMeter};
use crate::sync::Locked;
use crate::{Loader, Report};

/// What a loop sees of its pass.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Times as the loop sees them: with the wait for the interpreter, and what it takes to make objects of Python.
    meter: Arc<Mutex<ConsumerMeter>>,
    /// The time in which it waited for the interpreter last, and whether it had something to give, until the loader is told.
    kept: Mutex<Option<(Instant, Instant, bool)>>,
    cells: Mutex<Cells>,
}

impl Around {
    /// Shows the times to those who look at the pass.
    pub(super) fn show_to(&self, loader: &Loader<BoxIter<Item>>) {
        loader.show_around(&self.meter);
    }

    /// Tells the loader what was waited since it was told last.
    pub(super) fn tell(&self, loader: &mut Loader<BoxIter<Item>>) {
        if let Some((from, to, given)) = self.kept.locked().take() {
            loader.note_lock(from, to, given);
            loader.note_around(&self.meter.locked());
        }
    }

    /// Looks at an element that is handed over, the last of so many.
    pub(super) fn look(&self, item: &Item, delivered: u64) {
        if let Item::Element(element) = item {
            self.cells.locked().look(delivered.saturating_sub(1), element, None);
        }
    }

    /// The loop has the interpreter again, for which it has waited since then, with something that it was given or not.
    pub(super) fn has_lock(&self, since: Instant, given: bool) {
        let now = Instant::now();
        *self.kept.locked() = Some((since, now, given));
        if given {
            self.meter.locked().beside.count(Cause::Lock, now - since);
        }
    }

    /// A call that began then has ended. Each is measured, however short: one that seemed to be may have had to wait for the interpreter.
    pub(super) fn called(&self, start: Instant) {
        self.meter.locked().end(start);
    }

    /// It was waited for a device behind a call.
    pub(super) fn waited_for_device(&self, time: Duration) {
        self.meter.locked().wait_beside(Cause::Transfer, time);
    }

    /// Another loader takes the place of that one: times are those around its calls from now on.
    pub(super) fn begin_again(&self) {
        *self.meter.locked() = ConsumerMeter::default();
    }

    /// The report of the pass, with what was seen of it here.
    pub(super) fn report(&self, loader: &mut Loader<BoxIter<Item>>) -> Report {
        self.tell(loader);
        let (around, cells) = (self.meter.locked().clone(), self.cells.locked().clone());
        loader.report_around(Some(&around)).with_cells(cells)
    }
}
