//! What the consumer sees: how long each `next` took, and what was ready when it asked.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Measures every call of `next`.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerMeter {
    pub(crate) started: Option<Instant>,
    pub(crate) ended: Option<Instant>,
    pub(crate) waited: Duration,
    pub(crate) first_wait: Duration,
    pub(crate) calls: u64,
    pub(crate) delivered: u64,
    pub(crate) latency: Histogram<u64>,
    pub(crate) capacity: usize,
    pub(crate) buffered: u64,
}

impl Default for ConsumerMeter {
    fn default() -> Self {
        let mut latency = Histogram::new(2).expect("2 significant digits are valid");
        latency.auto(true);
        let none = Duration::ZERO;
        Self {
            started: None,
            ended: None,
            waited: none,
            first_wait: none,
            calls: 0,
            delivered: 0,
            latency,
            capacity: 0,
            buffered: 0,
        }
    }
}

impl ConsumerMeter {
    /// One call of `next` that began at `start` and found `buffered` packets ready.
    pub(crate) fn waited(&mut self, start: Instant, buffered: Option<usize>) {
        let now = Instant::now();
        let wait = now - start;
        if self.started.is_none() {
            self.started = Some(start);
            self.first_wait = wait;
        }
        self.ended = Some(now);
        self.waited += wait;
        self.calls += 1;
        self.buffered += buffered.unwrap_or(0) as u64;
        let _ = self.latency.record((wait.as_nanos() as u64).max(1));
    }

    /// From the first call of `next` to the end of the last.
    pub(crate) fn wall(&self) -> Duration {
        self.started.zip(self.ended).map_or(Duration::ZERO, |(start, end)| end - start)
    }

    /// How full the buffer was when the consumer asked, on average; `None` without one.
    pub(crate) fn fill(&self) -> Option<f64> {
        let places = self.capacity as u64 * self.calls;
        (places > 0).then(|| (self.buffered as f64 / places as f64).min(1.0))
    }

    /// Share of that time spent inside `next`.
    pub(crate) fn wait_share(&self) -> f64 {
        let wall = self.wall().as_secs_f64();
        if wall > 0.0 { self.waited.as_secs_f64() / wall } else { 0.0 }
    }
}
