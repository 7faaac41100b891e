//! Turns: a thread waits for another thread to do work that both need, such as decoding a row group.
//!
//! Such a wait is neither work nor a wait for a disk or a network, and more threads would only join the wait. It is therefore
//! counted separately and excluded from the busy time of threads.

use crate::sync::Locked;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

thread_local!(static WAITED_NS: Cell<u64> = const { Cell::new(0) });

/// Takes a lock whose holder does work that this thread needs too.
pub(crate) fn take_turn<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    match lock.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let start = Instant::now();
            let guard = lock.locked();
            WAITED_NS.set(WAITED_NS.get() + start.elapsed().as_nanos() as u64);
            guard
        }
    }
}

/// A clock that stops while its thread waits for a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnTime {
    start: Instant,
    waited_ns: u64,
}

impl OwnTime {
    /// Starts the clock on this thread.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), waited_ns: waited_ns() }
    }

    /// Returns the time from the start to `now`, without turns. Must run on the thread that started the clock.
    pub(crate) fn until(self, now: Instant) -> Duration {
        (now - self.start).saturating_sub(Duration::from_nanos(waited_ns() - self.waited_ns))
    }
}

/// Returns the nanoseconds that this thread has waited for turns so far.
pub(super) fn waited_ns() -> u64 {
    WAITED_NS.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_turn_is_no_time_of_ones_own() {
        let lock = &Mutex::new(());
        let long = Duration::from_millis(60);
        std::thread::scope(|scope| {
            let held = lock.lock().unwrap();
            let (begun, begins) = std::sync::mpsc::channel();
            let other = scope.spawn(move || {
                let (clock, start) = (OwnTime::start(), Instant::now());
                begun.send(()).unwrap();
                drop(take_turn(lock));
                let now = Instant::now();
                (clock.until(now), now - start)
            });
            begins.recv().unwrap();
            // The other thread reaches the lock meanwhile.
            std::thread::sleep(long);
            drop(held);
            let (own, all) = other.join().unwrap();
            // A thread without a core waits less for the lock if it asks later.
            assert!(own < all, "{own:?} of {all:?}");
        });
        let clock = OwnTime::start();
        // A wait for anything but a turn counts.
        std::thread::sleep(long);
        assert!(clock.until(Instant::now()) >= long);
    }
}
