//! The consumer's clock, as its evaluators read it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Clock of the consumer's waits. One thread writes, others read.
#[derive(Debug)]
pub(crate) struct Demand {
    start: Instant,
    waited_ns: AtomicU64,
    /// Start of the current wait, in nanoseconds after `start`; 0 if the consumer does not wait.
    since_ns: AtomicU64,
    /// Time of the last element, in nanoseconds after `start`; longest step since the last call of `steps`; number of steps.
    got_ns: AtomicU64,
    longest_ns: AtomicU64,
    steps: AtomicU64,
    /// Whether other work, such as a report, keeps the consumer from asking.
    aside: AtomicBool,
    /// Whether evaluators wait for memory that only the consumer can release.
    short: AtomicBool,
}

impl Default for Demand {
    fn default() -> Self {
        let [waited_ns, since_ns, got_ns, longest_ns, steps] = [0; 5].map(AtomicU64::new);
        let [aside, short] = [false; 2].map(AtomicBool::new);
        Self { start: Instant::now(), waited_ns, since_ns, got_ns, longest_ns, steps, aside, short }
    }
}

impl Demand {
    /// Records that the consumer begins to wait.
    pub(crate) fn begin(&self, now: Instant) {
        let now = self.ns(now).max(1);
        self.since_ns.store(now, Relaxed);
        self.longest_ns.fetch_max(now.saturating_sub(self.got_ns.load(Relaxed)), Relaxed);
        self.steps.fetch_add(1, Relaxed);
    }

    /// Records that the wait has ended.
    pub(crate) fn end(&self, now: Instant) {
        let now = self.ns(now);
        self.got_ns.store(now, Relaxed);
        let since = self.since_ns.swap(0, Relaxed);
        self.waited_ns.fetch_add(now.saturating_sub(since), Relaxed);
    }

    /// Runs longer `work` for the consumer, such as a report. The time counts neither as a wait nor as a step.
    pub(crate) fn aside<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        self.aside.store(true, Relaxed);
        let result = work();
        self.got_ns.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
        self.aside.store(false, Relaxed);
        result
    }

    /// Returns the time waited so far, including the current wait.
    pub(crate) fn waited(&self) -> std::time::Duration {
        let since = self.since_ns.load(Relaxed);
        let present = if since == 0 { 0 } else { self.ns(Instant::now()).saturating_sub(since) };
        std::time::Duration::from_nanos(self.waited_ns.load(Relaxed) + present)
    }

    /// Returns the number of requests so far, and the longest time between requests since the last call.
    pub(crate) fn steps(&self) -> (u64, std::time::Duration) {
        let asked = self.since_ns.load(Relaxed) > 0 || self.aside.load(Relaxed);
        let present = if asked { 0 } else { self.ns(Instant::now()).saturating_sub(self.got_ns.load(Relaxed)) };
        let longest = self.longest_ns.swap(0, Relaxed).max(present);
        (self.steps.load(Relaxed), std::time::Duration::from_nanos(longest))
    }

    /// Returns the length of the current wait, if any. Before its first request, the consumer counts as waiting.
    #[cfg(all(any(feature = "workers", feature = "top"), target_os = "linux"))]
    pub(crate) fn waiting(&self, now: Instant) -> Option<std::time::Duration> {
        let since = self.since_ns.load(Relaxed);
        let waits = since > 0 || self.steps.load(Relaxed) == 0;
        waits.then(|| std::time::Duration::from_nanos(self.ns(now).saturating_sub(since)))
    }

    /// Sets whether evaluators wait for memory that only the consumer can release.
    pub(crate) fn set_short(&self, short: bool) {
        self.short.store(short, Relaxed);
    }

    /// Returns true if evaluators wait for memory that only the consumer can release.
    pub(crate) fn is_short(&self) -> bool {
        self.short.load(Relaxed)
    }

    fn ns(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_done_for_the_consumer_is_no_pause_of_its_own() {
        let (demand, at) = (Demand::default(), |ms| Duration::from_millis(ms));
        demand.begin(demand.start + at(1));
        demand.end(demand.start + at(2));
        demand.aside(|| {
            // The work aside counts with its measured time, so the test holds if the sleep takes longer.
            std::thread::sleep(at(30));
            assert_eq!(demand.steps(), (1, at(1)));
        });
        demand.begin(Instant::now());
        let (steps, longest) = demand.steps();
        assert_eq!(steps, 2);
        assert!(longest < demand.start.elapsed() - at(30), "{longest:?}");
    }
}
