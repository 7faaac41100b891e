//! A small cache per thread, for stages whose neighbouring indices share work.
//!
//! A cache saves repeated work and never changes results: a stage must yield equal elements without it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crossbeam_utils::CachePadded;

/// Number of lanes, usually more than the threads that work on one dataset. With more threads, two threads share a lane
/// and overwrite each other's value.
const LANES: usize = 64;

/// One `Option<T>` per thread, for a bounded number of threads.
pub(super) struct Lanes<T>(Box<[CachePadded<Mutex<Option<T>>>]>);

impl<T> Lanes<T> {
    pub(super) fn new() -> Self {
        Self((0..LANES).map(|_| CachePadded::new(Mutex::new(None))).collect())
    }

    /// Returns the lane of this thread; `None` while another thread uses that lane. Never blocks.
    #[inline]
    pub(super) fn mine(&self) -> Option<MutexGuard<'_, Option<T>>> {
        match self.0[lane()].try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A clone has empty lanes.
impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

debug_as!(<T> Lanes<T>, |self, f| f.write_str("Lanes"));

/// Returns the lane of this thread. Threads are numbered consecutively, so threads of a pool have separate lanes.
#[inline]
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % LANES;
    }
    LANE.with(|lane| *lane)
}
