//! A little memory for each thread, for stages where neighbouring indices share work.
//!
//! It changes what is computed again, never what comes out: a stage must give the same element without it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crossbeam_utils::CachePadded;

/// More than the threads that work on one dataset, as a rule. Beyond it two share a lane and undo each other's work.
const LANES: usize = 64;

/// One `Option<T>` for each of a bounded number of threads.
pub(super) struct Lanes<T>(Box<[CachePadded<Mutex<Option<T>>>]>);

impl<T> Lanes<T> {
    pub(super) fn new() -> Self {
        Self((0..LANES).map(|_| CachePadded::new(Mutex::new(None))).collect())
    }

    /// The lane of this thread, or `None` while another thread is in it: nobody waits.
    #[inline]
    pub(super) fn mine(&self) -> Option<MutexGuard<'_, Option<T>>> {
        match self.0[lane()].try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A copy begins with empty lanes.
impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Lanes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lanes")
    }
}

/// Threads are numbered as they come, so that those of one pool never share a lane.
#[inline]
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
    }
    LANE.with(|lane| *lane)
}
