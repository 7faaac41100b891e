//! The switch and the counts of passes that plan batches and make no elements.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::Locked;

/// Settings and counts of a pass that yields plans alone.
#[derive(Debug, Default)]
pub(crate) struct PlansOnly {
    /// Whether plans contain the cells of each member.
    spans: AtomicBool,
    /// The index after the furthest index that was read at each border.
    read: Mutex<Vec<u64>>,
}

impl PlansOnly {
    /// Sets whether plans contain the cells of each member.
    pub(crate) fn set_spans(&self, spans: bool) {
        self.spans.store(spans, Ordering::Relaxed);
    }

    /// Returns true if plans contain the cells of each member.
    pub(crate) fn spans(&self) -> bool {
        self.spans.load(Ordering::Relaxed)
    }

    /// Notes that indices before `end` were read at border number `border`.
    pub(crate) fn note_read(&self, border: u32, end: u64) {
        let (mut read, border) = (self.read.locked(), border as usize);
        if read.len() <= border {
            read.resize(border + 1, 0);
        }
        read[border] = read[border].max(end);
    }

    /// Returns the index after the furthest index that was read at each border, and forgets it. Borders after the last that
    /// was read are left out.
    pub(crate) fn take_read(&self) -> Vec<u64> {
        std::mem::take(&mut *self.read.locked())
    }
}
