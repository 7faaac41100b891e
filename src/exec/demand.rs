//! What the consumer does, as those see it who work for it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// How long the consumer has waited. One thread writes, others read.
#[derive(Debug)]
pub(crate) struct Demand {
    start: Instant,
    waited_ns: AtomicU64,
    /// Since when it has been waiting, in nanoseconds after `start`; 0 if it is not.
    since_ns: AtomicU64,
}

impl Default for Demand {
    fn default() -> Self {
        Self { start: Instant::now(), waited_ns: AtomicU64::new(0), since_ns: AtomicU64::new(0) }
    }
}

impl Demand {
    /// The consumer begins to wait.
    pub(crate) fn begin(&self, now: Instant) {
        self.since_ns.store(self.ns(now).max(1), Relaxed);
    }

    /// It has got what it waited for.
    pub(crate) fn end(&self, now: Instant) {
        let since = self.since_ns.swap(0, Relaxed);
        self.waited_ns.fetch_add(self.ns(now).saturating_sub(since), Relaxed);
    }

    /// Time waited so far, the present wait too.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn waited(&self) -> std::time::Duration {
        let since = self.since_ns.load(Relaxed);
        let present = if since == 0 { 0 } else { self.ns(Instant::now()).saturating_sub(since) };
        std::time::Duration::from_nanos(self.waited_ns.load(Relaxed) + present)
    }

    fn ns(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_nanos() as u64
    }
}
