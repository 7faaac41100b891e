//! What is threaded through every stage while it runs: counters that cost next to nothing.
//!
//! A [`Cx`] belongs to one thread. It counts elements always, and measures self time of a sample of them: all where an
//! element is dear, one in 64 where it is cheap, so that the clock never costs more than about 1 %. Its owner hands
//! the counts over to the shared [`Recorder`] at times of its own choosing.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::error::Error;

/// A stage's place in the pipeline: its position in post-order among the nodes below the adaptor that made it.
///
/// An adaptor with several parents shifts the ids of each by [`Cx::within`], so ids are unique in a whole pipeline
/// although every node was numbered before it was known what it would become a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageId(pub(crate) u32);

impl StageId {
    /// The position as a number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What one stage did: plain numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Elements that left the stage.
    pub elements: u64,
    /// Payload bytes that left it, where each was counted.
    pub bytes: u64,
    /// Payload bytes of the timed calls, where they were counted so.
    pub sampled_bytes: u64,
    /// How often its work was run.
    pub calls: u64,
    /// How many of those calls were timed.
    pub timed_calls: u64,
    /// Nanoseconds in the timed calls.
    pub timed_ns: u64,
    /// Nanoseconds of work that is timed whenever it happens, whatever the sample.
    pub exact_ns: u64,
    /// Nanoseconds spent blocked in the stage, waiting for elements from other threads.
    pub wait_ns: u64,
}

impl Counts {
    /// Estimated time in the stage's own work.
    pub fn self_time(&self) -> Duration {
        Duration::from_nanos(self.scaled(self.timed_ns)).saturating_add(Duration::from_nanos(self.exact_ns))
    }

    /// Payload bytes that left the stage, estimated where only those of the sample were counted.
    pub fn bytes_out(&self) -> u64 {
        self.bytes + self.scaled(self.sampled_bytes)
    }

    /// From the sample to all calls.
    fn scaled(&self, sampled: u64) -> u64 {
        if self.timed_calls == 0 { 0 } else { (sampled as f64 * (self.calls as f64 / self.timed_calls as f64)) as u64 }
    }

    fn add(&mut self, other: &Self) {
        self.elements += other.elements;
        self.bytes += other.bytes;
        self.sampled_bytes += other.sampled_bytes;
        self.calls += other.calls;
        self.timed_calls += other.timed_calls;
        self.timed_ns += other.timed_ns;
        self.exact_ns += other.exact_ns;
        self.wait_ns += other.wait_ns;
    }
}

/// What one stage did on all threads together.
#[derive(Clone, Debug)]
pub struct StageTally {
    /// The sums.
    pub counts: Counts,
    /// Nanoseconds of each timed call and of each exact piece of work.
    pub latency: Histogram<u64>,
}

impl Default for StageTally {
    fn default() -> Self {
        // Two significant digits, growing with the range: a few kilobytes a stage.
        let mut latency = Histogram::new(2).expect("2 significant digits are valid");
        latency.auto(true);
        Self { counts: Counts::default(), latency }
    }
}

/// What one stage did on one thread since it last handed its counts over.
#[derive(Debug, Default)]
struct Local {
    counts: Counts,
    times: Vec<u64>,
}

impl Local {
    fn hand_over(&mut self, total: &mut StageTally) {
        total.counts.add(&std::mem::take(&mut self.counts));
        for ns in self.times.drain(..) {
            // The histogram grows on demand, so no value is out of its range.
            let _ = total.latency.record(ns.max(1));
        }
    }
}

/// Totals of every stage, shared by all threads of a run.
#[derive(Debug, Default)]
pub struct Recorder {
    stages: Mutex<Vec<StageTally>>,
    notes: Mutex<Vec<(String, u64)>>,
}

impl Recorder {
    /// A recorder for a pipeline of `stages` stages.
    pub fn new(stages: usize) -> Arc<Self> {
        Arc::new(Self { stages: Mutex::new(vec![StageTally::default(); stages]), notes: Mutex::default() })
    }

    /// The totals so far, by stage id.
    pub fn totals(&self) -> Vec<StageTally> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counted remarks so far (`"sequences split"`, `"bad records skipped"`), in the order they first came up.
    pub fn notes(&self) -> Vec<(String, u64)> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, what: &str, count: u64) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match notes.iter_mut().find(|(name, _)| name == what) {
            Some((_, total)) => *total += count,
            None => notes.push((what.to_owned(), count)),
        }
    }
}

/// What the clock itself adds to a measured time: the least of many empty measurements.
fn clock_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let empty = || Instant::now().elapsed().as_nanos() as u64;
        (0..256).map(|_| empty()).min().unwrap_or(0)
    })
}

/// Above this, an element is timed every time: two clock reads are then under 1 %.
const DEAR_NS: u64 = 10_000;
/// Cheap elements are timed once in this many, on average.
const SAMPLE_EVERY: u32 = 64;

/// The context of one thread that runs stages: see the [module](self).
#[derive(Debug)]
pub struct Cx {
    recorder: Option<Arc<Recorder>>,
    tally: Vec<Local>,
    base: usize,
    timing: bool,
    countdown: u32,
    dither: u32,
    timed_in_element: u64,
    last_flush: Instant,
}

impl Default for Cx {
    /// A context that records nothing: for calling a dataset by hand.
    fn default() -> Self {
        Self::build(None, 0)
    }
}

impl Cx {
    /// A context that reports to `recorder`.
    pub fn new(recorder: &Arc<Recorder>) -> Self {
        let stages = recorder.stages.lock().unwrap_or_else(PoisonError::into_inner).len();
        Self::build(Some(recorder.clone()), stages)
    }

    /// The same, for stages whose ids start at `base`.
    pub(crate) fn at(recorder: Option<&Arc<Recorder>>, base: usize) -> Self {
        let mut cx = recorder.map_or_else(Self::default, Self::new);
        cx.base = base;
        cx
    }

    fn build(recorder: Option<Arc<Recorder>>, stages: usize) -> Self {
        let tally = std::iter::repeat_with(Local::default).take(stages).collect();
        let last_flush = Instant::now();
        Self {
            recorder,
            tally,
            base: 0,
            timing: true,
            countdown: 1,
            dither: 0x9e37_79b9,
            timed_in_element: u64::MAX,
            last_flush,
        }
    }

    /// Runs the own work of a stage for one element, and counts it; what its parents do does not belong inside.
    #[inline]
    pub fn timed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        let Some(tally) = self.tally.get_mut(at) else { return work() };
        tally.counts.calls += 1;
        tally.counts.elements += 1;
        if !self.timing {
            return work();
        }
        self.clocked(at, work)
    }

    fn clocked<R>(&mut self, at: usize, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        let elapsed = (start.elapsed().as_nanos() as u64).saturating_sub(clock_ns());
        let tally = &mut self.tally[at];
        tally.counts.timed_calls += 1;
        tally.counts.timed_ns += elapsed;
        tally.times.push(elapsed);
        self.timed_in_element += elapsed;
        result
    }

    /// Runs work that is rare and large (stacking a batch, closing a row): timed each time. Counts no element.
    pub fn timed_exactly<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        if at >= self.tally.len() {
            return work();
        }
        let start = Instant::now();
        let result = work();
        let elapsed = start.elapsed().as_nanos() as u64;
        self.tally[at].counts.exact_ns += elapsed;
        self.tally[at].times.push(elapsed);
        result
    }

    /// Runs work of a stage that takes in an element but may let none out: counted as a call, sampled like
    /// [`timed`](Self::timed); the stage counts what leaves it by [`produced`](Self::produced).
    #[inline]
    pub fn consumed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        let Some(tally) = self.tally.get_mut(at) else { return work() };
        tally.counts.calls += 1;
        if !self.timing {
            return work();
        }
        self.clocked(at, work)
    }

    /// Counts elements and payload bytes that left a stage.
    #[inline]
    pub fn produced(&mut self, stage: StageId, elements: u64, bytes: u64) {
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.counts.elements += elements;
            tally.counts.bytes += bytes;
        }
    }

    /// Adds time for which a stage was blocked.
    pub(crate) fn waited(&mut self, stage: StageId, wait: Duration) {
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.counts.wait_ns += wait.as_nanos() as u64;
        }
    }

    /// Adds to `error` the stage whose own work failed, unless a stage before it has said so already.
    #[cold]
    pub fn blame(&self, stage: StageId, name: &str, error: Error) -> Error {
        error.stage(format!("{} {name}", self.base + stage.index()))
    }

    /// Adds the bytes of an element of the sample; the total is estimated from it.
    #[inline]
    pub fn sampled_bytes(&mut self, stage: StageId, bytes: u64) {
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.counts.sampled_bytes += bytes;
        }
    }

    /// Adds to a counted remark of the report, such as `"sequences split"`. For rare events: it takes a lock.
    #[cold]
    pub fn note(&mut self, what: &str, count: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.note(what, count);
        }
    }

    /// Runs a parent whose stage ids start at `offset` within this adaptor's.
    #[inline]
    pub fn within<R>(&mut self, offset: usize, run: impl FnOnce(&mut Self) -> R) -> R {
        self.base += offset;
        let result = run(self);
        self.base -= offset;
        result
    }

    /// Whether the present element is timed.
    pub fn is_timing(&self) -> bool {
        self.timing
    }

    /// Starts with the next root element: decides whether it belongs to the sample.
    ///
    /// After a dear element the next is timed too. The distance to the next sample of cheap ones is dithered, so that
    /// a period in the data cannot hide from the sample or dominate it.
    #[inline]
    pub(crate) fn begin_element(&mut self) {
        if self.timing && !self.end_sample() {
            return;
        }
        self.countdown -= 1;
        self.timing = self.countdown == 0;
    }

    /// Whether sampling may skip elements again.
    fn end_sample(&mut self) -> bool {
        if std::mem::take(&mut self.timed_in_element) > DEAR_NS {
            return false;
        }
        self.dither ^= self.dither << 13;
        self.dither ^= self.dither >> 17;
        self.dither ^= self.dither << 5;
        self.countdown = 1 + self.dither % (2 * SAMPLE_EVERY - 1);
        true
    }

    /// Hands the counts over if the last time was 20 ms ago or more.
    pub(crate) fn flush_if_due(&mut self) {
        if self.recorder.is_some() && self.last_flush.elapsed() > Duration::from_millis(20) {
            self.flush();
        }
    }

    /// Hands the counts over.
    pub(crate) fn flush(&mut self) {
        if let Some(recorder) = &self.recorder {
            let mut totals = recorder.stages.lock().unwrap_or_else(PoisonError::into_inner);
            totals.iter_mut().zip(&mut self.tally).for_each(|(total, own)| own.hand_over(total));
            self.last_flush = Instant::now();
        }
    }
}

impl Drop for Cx {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_elements_are_sampled_and_dear_ones_are_not() {
        let recorder = Recorder::new(2);
        let mut cx = Cx::new(&recorder);
        for _ in 0..64_000 {
            cx.begin_element();
            cx.timed(StageId(0), || ());
        }
        // The next sample starts at most 127 elements later; from then on every one is timed.
        for _ in 0..200 {
            cx.begin_element();
            cx.within(1, |cx| cx.timed(StageId(0), || std::thread::sleep(Duration::from_micros(200))));
        }
        cx.flush();
        let totals = recorder.totals();
        assert_eq!((totals[0].counts.elements, totals[1].counts.elements), (64_000, 200));
        assert!((300..3000).contains(&totals[0].counts.timed_calls), "{}", totals[0].counts.timed_calls);
        assert!(totals[1].counts.timed_calls >= 73, "{}", totals[1].counts.timed_calls);
        assert!(totals[1].counts.self_time() >= Duration::from_millis(40));
    }

    #[test]
    fn a_context_without_recorder_just_runs() {
        let mut cx = Cx::default();
        assert_eq!(cx.timed(StageId(7), || 3), 3);
    }
}
