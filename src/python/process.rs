//! Kinds of processes.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_WORKER: AtomicBool = AtomicBool::new(false);

/// Whether this process is a worker, whose results go to another process.
pub(super) fn is_worker() -> bool {
    IS_WORKER.load(Ordering::Relaxed)
}

/// From here on this process is a worker.
pub(super) fn becomes_worker() {
    IS_WORKER.store(true, Ordering::Relaxed);
}
