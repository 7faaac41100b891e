//! Byte budget for answers in transfer or in use.

use std::sync::{Arc, Mutex};

use crate::sync::Locked;
use crate::workers::pool::{MemoryFigures, Wake};

/// Byte budget: each answer takes a part before its request, and returns the part when its last view is dropped.
pub(super) struct Credits {
    bytes: u64,
    state: Mutex<State>,
    wake: Wake,
}

struct State {
    free: u64,
    figures: MemoryFigures,
    /// Whether a request was refused and waits for bytes to return.
    wanted: bool,
}

impl Credits {
    pub(super) fn new(bytes: u64, wake: Wake) -> Arc<Self> {
        let state = State { free: bytes, figures: MemoryFigures::default(), wanted: false };
        Arc::new(Self { bytes, state: Mutex::new(state), wake })
    }

    /// Takes `bytes` from the budget; returns `None` if fewer are free.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> Option<Credit> {
        let mut state = self.state.locked();
        if let Some(free) = state.free.checked_sub(bytes) {
            state.free = free;
            state.figures.high_water_bytes = state.figures.high_water_bytes.max(self.bytes - free);
            Some(Credit { credits: self.clone(), bytes })
        } else {
            state.wanted = true;
            None
        }
    }

    /// Counts `bytes` as in use in addition to the budget; their memory is reserved elsewhere.
    pub(super) fn count_beside(&self, bytes: u64) {
        let mut state = self.state.locked();
        let used = self.bytes - state.free + bytes;
        state.figures.high_water_bytes = state.figures.high_water_bytes.max(used);
    }

    pub(super) fn count_copy(&self) {
        self.state.locked().figures.copies += 1;
    }

    pub(super) fn figures(&self) -> MemoryFigures {
        let state = self.state.locked();
        MemoryFigures { used_bytes: self.bytes - state.free, ..state.figures }
    }

    fn give_back(&self, bytes: u64) {
        let mut state = self.state.locked();
        state.free += bytes;
        let wanted = std::mem::take(&mut state.wanted);
        drop(state);
        if wanted {
            (self.wake)();
        }
    }
}

/// Bytes taken from the budget. Dropping it returns the bytes.
pub(super) struct Credit {
    credits: Arc<Credits>,
    bytes: u64,
}

impl Credit {
    /// Returns all but `bytes` to the budget.
    pub(super) fn keep(&mut self, bytes: u64) {
        if let Some(back) = self.bytes.checked_sub(bytes).filter(|back| *back > 0) {
            self.bytes = bytes;
            self.credits.give_back(back);
        }
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        self.credits.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn what_is_given_back_wakes_whoever_was_refused() {
        let woken = Arc::<AtomicU32>::default();
        let count = woken.clone();
        let wake = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let credits = Credits::new(100, Box::new(wake));
        let mut most = credits.take(80).unwrap();
        assert!(credits.take(30).is_none());
        most.keep(60);
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        let more = credits.take(40).unwrap();
        assert!(credits.take(1).is_none());
        drop((most, more));
        assert_eq!((woken.load(Ordering::Relaxed), credits.figures().high_water_bytes), (2, 100));
        assert!(credits.take(100).is_some());
    }
}
