//! Meter of the consumer: the time of each `next`, and the number of ready batches at each call.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::cx::Cause;
use crate::cx::Shares;

/// Time below which calls of `next` are sampled: two clock reads would otherwise distort the figures.
const DEAR: Duration = Duration::from_micros(20);
const SAMPLE_EVERY: u64 = 16;
/// Number of consecutive cheap calls before sampling begins. A slow call after a short burst of batches is therefore timed.
const IN_A_ROW: u32 = 64;
/// Time above which a measured call stands only for itself.
const STALL: Duration = Duration::from_micros(200);

/// Meter of the consumer's calls of `next`: times all slow calls, and a dithered sample of the cheap calls.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerMeter {
    started: Option<Instant>,
    ended: Option<Instant>,
    pub(crate) waited: Duration,
    pub(crate) first_wait: Duration,
    pub(crate) delivered: u64,
    pub(crate) latency: Histogram<u64>,
    pub(crate) buffer: Buffer,
    /// Number of calls that the last timed call stands for.
    pub(crate) stands_for: u64,
    /// Waits in calls whose element was ready, by cause.
    pub(crate) beside: Shares,
    /// Sum of `beside` in the first call.
    first_beside: Duration,
    sampling: Sampling,
    /// Calls that did not wait, since the last timed call.
    at_hand: u64,
    /// Number of delivered elements that timed calls have accounted for.
    seen: u64,
}

/// The buffer of ready elements, as found by the consumer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffer {
    pub(crate) capacity: usize,
    looks: u64,
    buffered: u64,
}

/// Sampling of cheap calls.
#[derive(Clone, Copy, Debug)]
struct Sampling {
    /// Calls without a measurement, since the last timed call.
    untimed: u64,
    /// Calls to skip before the next timed call.
    skip: u64,
    /// Consecutive cheap calls.
    cheap: u32,
    dither: u64,
}

impl Default for ConsumerMeter {
    fn default() -> Self {
        let mut latency = Histogram::new(2).expect("2 significant digits are valid");
        latency.auto(true);
        Self {
            started: None,
            ended: None,
            waited: Duration::ZERO,
            first_wait: Duration::ZERO,
            delivered: 0,
            latency,
            buffer: Buffer::default(),
            stands_for: 1,
            beside: Shares::default(),
            first_beside: Duration::ZERO,
            sampling: Sampling { untimed: 0, skip: 0, cheap: 0, dither: 0x9e37_79b9_7f4a_7c15 },
            at_hand: 0,
            seen: 0,
        }
    }
}

impl ConsumerMeter {
    /// Begins a call of `next`. Returns the time if the call is measured.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<Instant> {
        if self.sampling.skip > 0 {
            self.sampling.skip -= 1;
            self.sampling.untimed += 1;
            return None;
        }
        Some(Instant::now())
    }

    /// Counts a call that does not wait because its element is ready.
    #[inline]
    pub(crate) fn no_wait(&mut self) {
        self.at_hand += 1;
    }

    /// Ends the call that began at `start`, and returns the time. The call also stands for the untimed calls before it.
    pub(crate) fn end(&mut self, start: Instant) -> Instant {
        let now = Instant::now();
        let wait = now - start;
        if self.started.is_none() {
            self.started = Some(start);
            self.first_wait = wait;
            self.first_beside = self.beside.total();
        }
        self.ended = Some(now);
        let untimed = std::mem::take(&mut self.sampling.untimed);
        // A stall does not imply that the calls before it stalled too.
        let stands_for = if wait > STALL { 1 } else { 1 + untimed };
        self.stands_for = stands_for;
        self.waited += wait * u32::try_from(stands_for).unwrap_or(u32::MAX);
        let _ = self.latency.record_n((wait.as_nanos() as u64).max(1), stands_for);
        // Recorded as 1 ns without a measurement: the call takes less time than a clock read.
        let _ = self.latency.record_n(1, std::mem::take(&mut self.at_hand));
        self.sampling.advance(wait > DEAR);
        now
    }

    /// Counts a wait outside of calls that has just ended.
    pub(crate) fn wait_beside(&mut self, cause: Cause, time: Duration) {
        self.beside.count(cause, time);
        self.waited += time;
        if self.started.is_some() {
            self.ended = Some(Instant::now());
        }
    }

    /// Returns the number of elements since the last timed call, including the present call if it `gave_one`.
    pub(crate) fn unseen(&mut self, gave_one: bool) -> u64 {
        let all = self.delivered + u64::from(gave_one);
        all - std::mem::replace(&mut self.seen, all)
    }

    /// Returns the times at which the consumer requested and received the first element.
    pub(crate) fn first(&self) -> Option<(Instant, Instant)> {
        self.started.map(|started| (started, started + self.first_wait))
    }

    /// Returns the time of the first call beyond the loader's first call, which `meter` measured, and beyond waits with a known cause.
    pub(super) fn first_beyond(&self, meter: &Self) -> Duration {
        self.first_wait.saturating_sub(meter.first_wait).saturating_sub(self.first_beside)
    }

    /// Counts a look of the consumer into the buffer that found `ready` places filled.
    pub(crate) fn look(&mut self, ready: usize) {
        self.buffer.looks += 1;
        self.buffer.buffered += ready as u64;
    }

    /// Returns the time from the first call of `next` to the end of the last measured call.
    pub(crate) fn wall(&self) -> Duration {
        self.started.zip(self.ended).map_or(Duration::ZERO, |(start, end)| end - start)
    }

    /// Returns the mean share of the buffer that was full when the consumer looked; `None` without a buffer.
    pub(crate) fn fill(&self) -> Option<f64> {
        let Buffer { capacity, looks, buffered } = self.buffer;
        let places = capacity as u64 * looks;
        (places > 0).then(|| (buffered as f64 / places as f64).min(1.0))
    }

    /// Returns the time spent inside `next`, without the first call.
    pub(crate) fn steady_wait(&self) -> Duration {
        self.waited.saturating_sub(self.first_wait)
    }
}

impl Sampling {
    /// Decides after a timed call how many calls to skip.
    fn advance(&mut self, dear: bool) {
        self.dither = self.dither.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.cheap = if dear { 0 } else { self.cheap.saturating_add(1) };
        self.skip = if self.cheap < IN_A_ROW { 0 } else { (self.dither >> 33) % (2 * SAMPLE_EVERY) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures a call that began `ago` before now.
    fn call(meter: &mut ConsumerMeter, ago: Duration) {
        meter.end(Instant::now().checked_sub(ago).unwrap());
    }

    #[test]
    fn a_stall_stands_for_itself_and_a_cheap_call_for_those_before_it() {
        let mut meter = ConsumerMeter::default();
        meter.sampling.untimed = 9;
        call(&mut meter, Duration::from_secs(7));
        assert_eq!((meter.stands_for, meter.latency.len()), (1, 1));
        // A call with a start in the future takes no time, even on a busy machine.
        meter.sampling.untimed = 9;
        meter.end(Instant::now() + Duration::from_secs(60));
        assert_eq!((meter.stands_for, meter.latency.len()), (10, 11));
    }

    #[test]
    fn the_first_wait_is_no_part_of_the_steady_one() {
        let mut meter = ConsumerMeter::default();
        call(&mut meter, Duration::from_secs(100));
        assert_eq!(meter.steady_wait(), Duration::ZERO);
        call(&mut meter, Duration::from_secs(3));
        assert!(meter.steady_wait() >= Duration::from_secs(3));
        assert_eq!(meter.waited, meter.first_wait + meter.steady_wait());
    }

    #[test]
    fn the_buffer_is_as_full_as_it_was_found_on_average() {
        let mut meter = ConsumerMeter::default();
        meter.buffer.capacity = 8;
        assert_eq!(meter.fill(), None);
        [8, 0, 2, 2].into_iter().for_each(|ready| meter.look(ready));
        assert_eq!(meter.fill(), Some(12.0 / 32.0));
        // A look may also find packets that were taken meanwhile.
        (0..9).for_each(|_| meter.look(80));
        assert_eq!(meter.fill(), Some(1.0));
    }
}
