//! Measurements of a pass by the Python loop: times that include the interpreter, and delivered batches.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::item::Item;
use crate::cx::Cause;
use crate::dataset::BoxIter;
use crate::report::{Cells, ConsumerMeter};
use crate::sync::Locked;
use crate::{Loader, Report};

/// Measurements of a pass by its loop.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Times of the loop, including the wait for the interpreter and the conversion to Python objects.
    meter: Arc<Mutex<ConsumerMeter>>,
    /// The last wait for the interpreter, and whether an element was ready. The loader receives it later.
    kept: Mutex<Option<(Instant, Instant, bool)>>,
    cells: Mutex<Cells>,
}

impl Around {
    /// Gives the times to the views of the pass.
    pub(super) fn show_to(&self, loader: &Loader<BoxIter<Item>>) {
        loader.show_around(&self.meter);
    }

    /// Gives the waits since the last call to the loader.
    pub(super) fn tell(&self, loader: &mut Loader<BoxIter<Item>>) {
        if let Some((from, to, given)) = self.kept.locked().take() {
            loader.note_lock(from, to, given);
            loader.note_around(&self.meter.locked());
        }
    }

    /// Records a delivered element; `delivered` counts the elements so far.
    pub(super) fn look(&self, item: &Item, delivered: u64) {
        if let Item::Element(element) = item {
            self.cells.locked().look(delivered.saturating_sub(1), element, None);
        }
    }

    /// Records a wait for the interpreter since `since`, with or without an element.
    pub(super) fn has_lock(&self, since: Instant, given: bool) {
        let now = Instant::now();
        *self.kept.locked() = Some((since, now, given));
        if given {
            self.meter.locked().beside.count(Cause::Lock, now - since);
        }
    }

    /// Records a call that began at `start`. Short calls count, too: they may have waited for the interpreter.
    pub(super) fn called(&self, start: Instant) {
        self.meter.locked().end(start);
    }

    /// Records a wait for a device after a call.
    pub(super) fn waited_for_device(&self, time: Duration) {
        self.meter.locked().wait_beside(Cause::Transfer, time);
    }

    /// Starts the times again, for another loader.
    pub(super) fn begin_again(&self) {
        *self.meter.locked() = ConsumerMeter::default();
    }

    /// Returns the report of the pass, with these measurements.
    pub(super) fn report(&self, loader: &mut Loader<BoxIter<Item>>) -> Report {
        self.tell(loader);
        let (around, cells) = (self.meter.locked().clone(), self.cells.locked().clone());
        loader.report_around(Some(&around)).with_cells(cells)
    }
}
