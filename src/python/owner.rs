//! The thread that has a loader.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::fork::ThreadOf;

/// Mark of the thread that has the loader, until it is dropped.
pub(super) struct Owner<'a>(&'a AtomicU64);

impl<'a> Owner<'a> {
    /// Marks this thread.
    pub(super) fn enter(owner: &'a AtomicU64) -> Self {
        owner.store(ThreadOf::here().to_bits(), Ordering::Release);
        Self(owner)
    }
}

impl Drop for Owner<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}
