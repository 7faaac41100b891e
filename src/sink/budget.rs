//! Memory budget of elements that wait to be written.

use crate::sync::Locked;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limit of the bytes that wait to be written, shared by all shards.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) limit: u64,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    now: u64,
    most: u64,
}

/// Reserved part of a [`Budget`], released when it is dropped.
#[derive(Debug)]
pub(super) struct Room {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: Mutex::default(), freed: Condvar::new() })
    }

    /// Waits for room for `bytes`; returns the room and the time waited. A request above the limit waits until nothing
    /// else is reserved.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> (Room, Duration) {
        let has_room = |used: &Used| used.now == 0 || used.now.saturating_add(bytes) <= self.limit;
        let mut used = self.used();
        let mut waited = Duration::ZERO;
        if !has_room(&used) {
            let start = Instant::now();
            used = self.freed.wait_while(used, |used| !has_room(used)).unwrap_or_else(PoisonError::into_inner);
            waited = start.elapsed();
        }
        used.add(bytes);
        (Room { budget: self.clone(), bytes }, waited)
    }

    /// Reserves `bytes` regardless of the limit, for elements held until the columns are settled.
    pub(super) fn take_at_once(self: &Arc<Self>, bytes: u64) -> Room {
        self.used().add(bytes);
        Room { budget: self.clone(), bytes }
    }

    /// Returns the most bytes that were ever reserved.
    pub(super) fn most(&self) -> u64 {
        self.used().most
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.locked()
    }
}

impl Used {
    fn add(&mut self, bytes: u64) {
        self.now = self.now.saturating_add(bytes);
        self.most = self.most.max(self.now);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut used = self.budget.used();
        used.now = used.now.saturating_sub(self.bytes);
        drop(used);
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_room_waits_for_it() {
        let budget = Budget::new(10);
        let (first, waited) = budget.take(6);
        assert!(waited.is_zero());
        let waiting = {
            let budget = budget.clone();
            std::thread::spawn(move || budget.take(5).1)
        };
        assert!(!waiting.is_finished());
        drop(first);
        waiting.join().unwrap();
        assert_eq!((budget.most(), budget.used().now), (6, 0));
    }

    #[test]
    fn what_is_larger_than_all_of_it_goes_alone() {
        let budget = Budget::new(10);
        let (room, waited) = budget.take(1000);
        assert!(waited.is_zero() && budget.used().now == 1000);
        drop(room);
        assert_eq!(budget.used().now, 0);
    }
}
