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
    /// When it last got something; the longest time since then for which it did something else; and how often it did.
    got_ns: AtomicU64,
    longest_ns: AtomicU64,
    steps: AtomicU64,
}

impl Default for Demand {
    fn default() -> Self {
        let [waited_ns, since_ns, got_ns, longest_ns, steps] = [0; 5].map(AtomicU64::new);
        Self { start: Instant::now(), waited_ns, since_ns, got_ns, longest_ns, steps }
    }
}

impl Demand {
    /// The consumer begins to wait.
    pub(crate) fn begin(&self, now: Instant) {
        let now = self.ns(now).max(1);
        self.since_ns.store(now, Relaxed);
        self.longest_ns.fetch_max(now.saturating_sub(self.got_ns.load(Relaxed)), Relaxed);
        self.steps.fetch_add(1, Relaxed);
    }

    /// It has got what it waited for.
    pub(crate) fn end(&self, now: Instant) {
        let now = self.ns(now);
        self.got_ns.store(now, Relaxed);
        let since = self.since_ns.swap(0, Relaxed);
        self.waited_ns.fetch_add(now.saturating_sub(since), Relaxed);
    }

    /// Time waited so far, the present wait too.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn waited(&self) -> std::time::Duration {
        let since = self.since_ns.load(Relaxed);
        let present = if since == 0 { 0 } else { self.ns(Instant::now()).saturating_sub(since) };
        std::time::Duration::from_nanos(self.waited_ns.load(Relaxed) + present)
    }

    /// How often it has asked for something so far, and for how long at most it did not since this was last read.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn steps(&self) -> (u64, std::time::Duration) {
        let asked = self.since_ns.load(Relaxed) > 0;
        let present = if asked { 0 } else { self.ns(Instant::now()).saturating_sub(self.got_ns.load(Relaxed)) };
        let longest = self.longest_ns.swap(0, Relaxed).max(present);
        (self.steps.load(Relaxed), std::time::Duration::from_nanos(longest))
    }

    fn ns(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_nanos() as u64
    }
}
