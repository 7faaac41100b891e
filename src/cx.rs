//! What is threaded through every stage while it runs: counters that cost next to nothing.
//!
//! A [`Cx`] belongs to one thread. It counts elements always, and measures self time of a sample of them: all where an
//! element takes 50 µs or more, fewer the cheaper they are, so that measuring costs a small part of 1 %. Each measured
//! element stands for those before it that were not. Its owner hands the counts over to the shared [`Recorder`] at times
//! of its own choosing.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Elements that left the stage.
    pub elements: u64,
    /// Payload bytes that left it: counted, or estimated from the sample.
    pub bytes: u64,
    /// Nanoseconds in the stage's own work, estimated from the sample.
    pub self_ns: u64,
    /// Of those, what was spent by those who evaluate elements ahead: threads, here or in worker processes.
    pub ahead_ns: u64,
    /// Nanoseconds spent blocked in the stage, waiting for elements from other threads.
    pub wait_ns: u64,
}

impl Counts {
    /// Estimated time in the stage's own work.
    pub fn self_time(&self) -> Duration {
        Duration::from_nanos(self.self_ns)
    }

    fn add(&mut self, other: &Self) {
        self.elements += other.elements;
        self.bytes += other.bytes;
        self.self_ns += other.self_ns;
        self.ahead_ns += other.ahead_ns;
        self.wait_ns += other.wait_ns;
    }
}

/// What one stage did on all threads together.
#[derive(Clone, Debug)]
pub struct StageTally {
    /// The sums.
    pub counts: Counts,
    /// Nanoseconds of a piece of work; a measured one stands for those that were not, too.
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
    /// Of the sampled elements: their time and bytes, each times what it stands for.
    sample_ns: u64,
    sample_bytes: u64,
    times: Vec<(u64, u32)>,
    rare: Rare,
}

/// Pieces of work that belong to no single element.
#[derive(Debug, Default)]
struct Rare {
    /// How many more are not measured.
    skip: u32,
    skipped: u32,
    last_ns: u64,
}

impl Local {
    /// `scale` corrects the sample for the elements behind its last one.
    fn hand_over(&mut self, scale: f64, ahead: bool, total: &mut StageTally) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.self_ns += (std::mem::take(&mut self.sample_ns) as f64 * scale) as u64;
        counts.self_ns += u64::from(std::mem::take(&mut self.rare.skipped)) * self.rare.last_ns;
        counts.bytes += (std::mem::take(&mut self.sample_bytes) as f64 * scale) as u64;
        counts.ahead_ns = if ahead { counts.self_ns } else { 0 };
        total.counts.add(&counts);
        for (ns, stands_for) in self.times.drain(..) {
            // The histogram grows on demand, so no value is out of its range.
            let _ = total.latency.record_n(ns.max(1), u64::from(stands_for));
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

    /// What was recorded since this was called last, to be added to the recorder of another process.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn drain(&self) -> Tally {
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = stages.iter_mut().enumerate().filter(|(_, tally)| tally.counts != Counts::default());
        let stages = taken.map(|(stage, tally)| StageCounts::take(stage as u32, tally)).collect();
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        Tally { stages, notes }
    }

    /// Adds what another process recorded; of stages that this one does not have, nothing.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn add(&self, tally: Tally) {
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        for own in tally.stages {
            let Some(total) = stages.get_mut(own.stage as usize) else { continue };
            total.counts.add(&own.counts);
            for (ns, count) in own.latency {
                let _ = total.latency.record_n(ns, count);
            }
        }
        drop(stages);
        tally.notes.iter().for_each(|(what, count)| self.note(what, *count));
    }

    pub(crate) fn note(&self, what: &str, count: u64) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match notes.iter_mut().find(|(name, _)| name == what) {
            Some((_, total)) => *total += count,
            None => notes.push((what.to_owned(), count)),
        }
    }
}

/// What was recorded in another process.
#[cfg(all(feature = "workers", target_os = "linux"))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    stages: Vec<StageCounts>,
    notes: Vec<(String, u64)>,
}

#[cfg(all(feature = "workers", target_os = "linux"))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StageCounts {
    stage: u32,
    counts: Counts,
    /// Nanoseconds, and how often.
    latency: Vec<(u64, u64)>,
}

#[cfg(all(feature = "workers", target_os = "linux"))]
impl StageCounts {
    fn take(stage: u32, tally: &mut StageTally) -> Self {
        let latency = tally.latency.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        tally.latency.reset();
        Self { stage, counts: std::mem::take(&mut tally.counts), latency }
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

/// One part in this many of the time goes into measuring elements.
const SHARE: u64 = 400;
/// However cheap elements are, one in this many is measured.
const MAX_STRIDE: u64 = 1024;
/// Rare work that is longer than this is measured each time; of shorter pieces, one in [`RARE_EVERY`] on average.
const LONG_NS: u64 = 20_000;
const RARE_EVERY: u32 = 8;

/// The context of one thread that runs stages: see the [module](self).
#[derive(Debug)]
pub struct Cx {
    recorder: Option<Arc<Recorder>>,
    tally: Vec<Local>,
    base: usize,
    ahead: bool,
    sample: Sample,
    last_flush: Instant,
    waiting: Waiting,
}

/// What is done before this thread waits for others.
#[derive(Default)]
struct Waiting(Option<Box<dyn FnMut() + Send>>);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Some" } else { "None" })
    }
}

/// Which elements are measured, and how many each of them stands for.
#[derive(Debug)]
struct Sample {
    /// Whether the present element is measured.
    on: bool,
    /// Elements until the next one that is.
    countdown: u32,
    /// How many the present or next one stands for.
    stride: u32,
    /// What measuring the present element found, and how often the clock was read for it.
    element_ns: u64,
    measurements: u64,
    /// Elements begun, and those that the sample stands for, since the counts were handed over.
    begun: u64,
    stood_for: u64,
    dither: u32,
}

impl Sample {
    fn new() -> Self {
        let (countdown, stride, dither) = (1, 1, 0x9e37_79b9);
        Self { on: false, countdown, stride, element_ns: 0, measurements: 0, begun: 0, stood_for: 0, dither }
    }

    #[inline]
    fn begin_element(&mut self) {
        if self.on {
            self.choose_next();
        }
        self.begun += 1;
        self.countdown -= 1;
        self.on = self.countdown == 0;
        if self.on {
            self.stood_for += u64::from(self.stride);
        }
    }

    /// The distance to the next measured element: so far that measuring costs one part in [`SHARE`] of the time that the
    /// present one took. It is dithered, so that a period in the data cannot hide from the sample or dominate it.
    fn choose_next(&mut self) {
        let (measurements, ns) = (std::mem::take(&mut self.measurements), std::mem::take(&mut self.element_ns));
        let cost = measurements * (2 * clock_ns() + 20);
        let stride = if cost == 0 { MAX_STRIDE } else { (cost * SHARE / ns.max(1)).clamp(1, MAX_STRIDE) } as u32;
        self.stride = 1 + self.draw(2 * stride - 1);
        self.countdown = self.stride;
    }

    /// Ends the present stretch of elements: what the sample has to be multiplied by to stand for all of them.
    fn close(&mut self) -> f64 {
        if self.stood_for == 0 {
            // Nothing was measured, so there is nothing to scale; these elements go to the next stretch.
            return 1.0;
        }
        let scale = self.begun as f64 / self.stood_for as f64;
        if !self.on {
            // Elements behind the last measured one are in the scale; the next one stands for those after it.
            self.stride = self.countdown;
        }
        (self.begun, self.stood_for) = (0, 0);
        scale
    }

    /// A number below `n`.
    fn draw(&mut self, n: u32) -> u32 {
        self.dither ^= self.dither << 13;
        self.dither ^= self.dither >> 17;
        self.dither ^= self.dither << 5;
        self.dither % n
    }
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

    /// The same, for one who works ahead of whoever asks for elements.
    pub(crate) fn ahead(mut self) -> Self {
        self.ahead = true;
        self
    }

    fn build(recorder: Option<Arc<Recorder>>, stages: usize) -> Self {
        let tally = std::iter::repeat_with(Local::default).take(stages).collect();
        let (last_flush, waiting) = (Instant::now(), Waiting::default());
        Self { recorder, tally, base: 0, ahead: false, sample: Sample::new(), last_flush, waiting }
    }

    /// Runs the own work of a stage for one element, and counts it; what its parents do does not belong inside.
    #[inline]
    pub fn timed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        let Some(tally) = self.tally.get_mut(at) else { return work() };
        tally.counts.elements += 1;
        if self.sample.on { self.clocked(at, work) } else { work() }
    }

    /// Runs work of a stage that takes in an element but may let none out: sampled like [`timed`](Self::timed); the stage
    /// counts what leaves it by [`produced`](Self::produced).
    #[inline]
    pub fn consumed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        if self.sample.on && at < self.tally.len() { self.clocked(at, work) } else { work() }
    }

    fn clocked<R>(&mut self, at: usize, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        let elapsed = (start.elapsed().as_nanos() as u64).saturating_sub(clock_ns());
        let (tally, stands_for) = (&mut self.tally[at], self.sample.stride);
        tally.sample_ns += elapsed * u64::from(stands_for);
        tally.times.push((elapsed, stands_for));
        self.sample.element_ns += elapsed;
        self.sample.measurements += 1;
        result
    }

    /// Runs work that belongs to many elements (stacking a batch, closing a row): measured each time where it is long, on a
    /// sample of its own where it is short. Counts no element.
    pub fn timed_exactly<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let Some(tally) = self.tally.get_mut(self.base + stage.index()) else { return work() };
        if tally.rare.skip > 0 {
            tally.rare.skip -= 1;
            tally.rare.skipped += 1;
            return work();
        }
        let start = Instant::now();
        let result = work();
        let elapsed = start.elapsed().as_nanos() as u64;
        let stands_for = 1 + std::mem::take(&mut tally.rare.skipped);
        tally.counts.self_ns += elapsed * u64::from(stands_for);
        tally.times.push((elapsed, stands_for));
        tally.rare.last_ns = elapsed;
        tally.rare.skip = if elapsed > LONG_NS { 0 } else { self.sample.draw(2 * RARE_EVERY - 1) };
        result
    }

    /// Counts elements and payload bytes that left a stage.
    #[inline]
    pub fn produced(&mut self, stage: StageId, elements: u64, bytes: u64) {
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.counts.elements += elements;
            tally.counts.bytes += bytes;
        }
    }

    /// Has `what` done each time before this thread waits for elements from others.
    pub(crate) fn before_waiting(&mut self, what: impl FnMut() + Send + 'static) {
        self.waiting.0 = Some(Box::new(what));
    }

    /// An element is not there yet.
    pub(crate) fn will_wait(&mut self) {
        if let Some(before) = &mut self.waiting.0 {
            before();
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
        let stands_for = u64::from(self.sample.stride);
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.sample_bytes += bytes * stands_for;
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

    /// Whether the present element is measured.
    pub fn is_timing(&self) -> bool {
        self.sample.on
    }

    /// Starts with the next root element: decides whether it belongs to the sample.
    #[inline]
    pub(crate) fn begin_element(&mut self) {
        self.sample.begin_element();
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
            let scale = self.sample.close();
            totals.iter_mut().zip(&mut self.tally).for_each(|(total, own)| own.hand_over(scale, self.ahead, total));
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

    fn spin(ns: u64) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_nanos(ns) {}
    }

    #[test]
    fn cheap_elements_are_sampled_and_dear_ones_are_not() {
        let recorder = Recorder::new(2);
        let mut cx = Cx::new(&recorder);
        let mut measured = 0;
        for _ in 0..64_000 {
            cx.begin_element();
            measured += u32::from(cx.is_timing());
            cx.timed(StageId(0), || ());
        }
        assert!((20..20_000).contains(&measured), "{measured}");
        // The next sample starts at most 2047 elements later; from then on every one is timed.
        let mut dear = 0;
        for _ in 0..2200 {
            cx.begin_element();
            dear += u32::from(cx.is_timing());
            cx.within(1, |cx| cx.timed(StageId(0), || spin(100_000)));
        }
        cx.flush();
        let totals = recorder.totals();
        assert_eq!((totals[0].counts.elements, totals[1].counts.elements), (64_000, 2200));
        assert!(dear >= 153, "{dear}");
    }

    /// What is estimated is what was there: in phases, with rare dear elements, in stretches of any length.
    #[test]
    fn the_sample_stands_for_all_elements() {
        let phases = |i: u64| if i < 40_000 { 1000 } else { 5000 };
        let dear_tail = |i: u64| if i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 == 0 { 50_000 } else { 500 };
        for cost in [phases, dear_tail] {
            for stretch in [7, 100, 4000, 80_000] {
                let (mut sample, mut estimate, mut open, mut true_ns, mut measured) = (Sample::new(), 0.0, 0, 0, 0);
                for i in 0..80_000 {
                    sample.begin_element();
                    if sample.on {
                        open += cost(i) * u64::from(sample.stride);
                        (sample.element_ns, sample.measurements) = (cost(i), 1);
                        measured += 1;
                    }
                    true_ns += cost(i);
                    if i % stretch == stretch - 1 || i == 79_999 {
                        estimate += std::mem::take(&mut open) as f64 * sample.close();
                    }
                }
                let share = estimate / true_ns as f64;
                assert!((0.75..1.25).contains(&share), "stretch {stretch}: {share}");
                assert!(measured < 20_000, "{measured}");
            }
        }
    }

    #[test]
    fn short_rare_work_is_sampled_and_counted_in_full() {
        let recorder = Recorder::new(1);
        let mut cx = Cx::new(&recorder);
        for _ in 0..1000 {
            cx.timed_exactly(StageId(0), || spin(2000));
        }
        let measured = cx.tally[0].times.len();
        assert!((60..300).contains(&measured), "{measured}");
        cx.flush();
        let tally = &recorder.totals()[0];
        assert!((1000 * 2000 * 9 / 10..).contains(&tally.counts.self_ns), "{tally:?}");
    }

    #[test]
    fn a_context_without_recorder_just_runs() {
        let mut cx = Cx::default();
        assert_eq!(cx.timed(StageId(7), || 3), 3);
    }
}
