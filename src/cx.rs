//! The context that every stage receives while it runs. Its counters cost next to nothing.
//!
//! A [`Cx`] belongs to one thread. It counts every element and measures the self time of a sample of them. The sample
//! contains every element that takes 50 µs or more. Cheaper elements are sampled less often, so that measuring costs a small
//! part of 1 %. Each measured element represents the unmeasured elements before it.
//!
//! Chunks are sampled instead if elements are evaluated in chunks. The work of a stage on a sampled chunk is measured as a
//! whole. For a part of the sample, the context also separates time on a core from waits for a disk, a network or the
//! interpreter's lock. The owner of the context chooses when to hand its counts to the shared [`Recorder`].

pub(crate) mod clock;
mod component;
mod element_id;
mod evaluation;
mod group;
mod local;
mod outside_waits;
mod progress;
mod recorder;
mod records;
mod response;
mod sample;
mod tally;
pub(crate) mod turn;
mod waits;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::clock::Begun;
pub(crate) use self::component::ComponentCounts;
pub(crate) use self::element_id::ElementId;
pub(crate) use self::evaluation::waited_for_store;
pub(crate) use self::evaluation::{Evaluation, EvaluatorId, ThreadWaits, Watch, number_thread};
pub(crate) use self::group::ElementGroup;
use self::group::SlowestGroup;
use self::local::{Local, UNITS, Unit};
use self::progress::Progress;
pub(crate) use self::progress::ReadPositions;
pub(crate) use self::recorder::Command;
pub(crate) use self::recorder::HostCounts;
pub use self::recorder::{Counts, Recorder, StageTally};
pub(crate) use self::records::{
    Batch, Chunk, Cursor, Fill, History, Interval, LEVELS, Snapshot, Taken, Update, WorkerMemory,
};
pub(crate) use self::response::Response;
use self::sample::{Sample, clock_ns};
pub(crate) use self::tally::Tally;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use self::waits::Hold;
pub(crate) use self::waits::{Account, Shares};
pub use self::waits::{Cause, LongWait, StoreUse, WaitSuspect};
use crate::error::Error;

/// Position of a stage in the pipeline, in post-order among the nodes below the adaptor that made it.
///
/// An adaptor with several parents shifts the ids of each parent with [`Cx::within`]. Ids are therefore unique in the
/// whole pipeline, although each node is numbered before it becomes part of a larger pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageId(pub(crate) u32);

impl StageId {
    /// Returns the position as a number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Interval of measured chunks among chunks that may cost as little as reading the clock.
const LOOK_EVERY: u32 = 16;
/// Rare work longer than this is measured each time. Of shorter work, one piece in [`RARE_EVERY`] is measured on average.
const LONG_NS: u64 = 20_000;
const RARE_EVERY: u32 = 8;

/// The context of one thread that runs stages. See the [module](self).
#[derive(Debug)]
pub struct Cx {
    recorder: Option<Arc<Recorder>>,
    tally: Vec<Local>,
    pub(crate) base: usize,
    ahead: bool,
    unit: Unit,
    /// True while a plan is made, whose elements represent other elements.
    plans: bool,
    samples: [Sample; UNITS],
    looks: u32,
    /// Counts at the start of the present chunk: elements and bytes of each stage.
    marks: Vec<(u64, u64)>,
    last_flush: Instant,
    waiting: Waiting,
    slowest: Box<SlowestGroup>,
    element: Option<ElementId>,
    /// Counts of components, by the id of the component's last stage. Empty until a mix counts.
    components: Vec<ComponentCounts>,
    progress: Progress,
}

/// A callback to run before this thread waits for other threads.
#[derive(Default)]
struct Waiting(Option<Box<dyn FnMut() + Send>>);

debug_as!(Waiting, |self, f| f.write_str(if self.0.is_some() { "Some" } else { "None" }));

impl Default for Cx {
    /// Returns a context that records nothing, for calling a dataset directly.
    fn default() -> Self {
        Self::build(None, 0)
    }
}

impl Cx {
    /// Returns a context that reports to `recorder`.
    pub fn new(recorder: &Arc<Recorder>) -> Self {
        let stages = recorder.stages().len();
        Self::build(Some(recorder.clone()), stages)
    }

    /// Returns a context for stages whose ids start at `base`. It reports to `recorder`, if any.
    pub(crate) fn at(recorder: Option<&Arc<Recorder>>, base: usize) -> Self {
        let mut cx = recorder.map_or_else(Self::default, Self::new);
        cx.base = base;
        cx
    }

    /// Marks the context of a thread that works ahead of the consumer.
    pub(crate) fn ahead(mut self) -> Self {
        self.ahead = true;
        self
    }

    fn build(recorder: Option<Arc<Recorder>>, stages: usize) -> Self {
        let tally = std::iter::repeat_with(Local::default).take(stages).collect();
        Self {
            recorder,
            tally,
            base: 0,
            ahead: false,
            unit: Unit::Element,
            plans: false,
            samples: [(); UNITS].map(|()| Sample::new()),
            looks: 0,
            marks: Vec::new(),
            last_flush: Instant::now(),
            waiting: Waiting::default(),
            slowest: Box::default(),
            element: None,
            components: Vec::new(),
            progress: Progress::default(),
        }
    }

    /// Returns the identity of the last element, if keys of stages are recorded. Returns `None` for an element
    /// that shares its record with others.
    #[inline]
    pub(crate) fn element(&self) -> Option<ElementId> {
        self.element
    }

    /// Sets the identity of the next element.
    #[inline]
    pub(crate) fn set_element(&mut self, element: Option<ElementId>) {
        self.element = element;
    }

    /// Returns the sample in use.
    #[inline]
    fn sample(&mut self) -> &mut Sample {
        &mut self.samples[self.unit.sample(self.plans)]
    }

    /// Runs a part of a plan. Elements that begin during the call represent other elements.
    pub(crate) fn planning<R>(&mut self, plan: impl FnOnce(&mut Self) -> R) -> R {
        let (before, unit) = (std::mem::replace(&mut self.plans, true), self.unit);
        let result = plan(self);
        (self.plans, self.unit) = (before, unit);
        result
    }

    /// Runs and counts the work of a stage on one element. `work` must not include the work of parent stages.
    #[inline]
    pub fn timed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        let is_counted = self.tally.get_mut(at).map(|tally| tally.counts.elements += 1).is_some();
        self.measured(is_counted && self.is_timing(), at, 1, work)
    }

    /// Runs work of a stage that consumes an element and may yield none. Sampled like [`timed`](Self::timed). The stage
    /// counts its output with [`produced`](Self::produced).
    #[inline]
    pub fn consumed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        self.measured(self.is_timing() && at < self.tally.len(), at, 1, work)
    }

    /// Runs and counts the work of a stage on many elements, measured like [`timed`](Self::timed). See
    /// [`MapDataset::get_many`](crate::MapDataset::get_many).
    #[inline]
    pub fn timed_many<R>(&mut self, stage: StageId, elements: usize, work: impl FnOnce() -> R) -> R {
        self.produced(stage, elements as u64, 0);
        self.consumed_many(stage, elements, work)
    }

    /// Runs work of a stage on many elements, measured like [`consumed`](Self::consumed). Counts no element.
    #[inline]
    pub fn consumed_many<R>(&mut self, stage: StageId, elements: usize, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        self.measured(elements > 0 && self.is_timing() && at < self.tally.len(), at, elements as u64, work)
    }

    /// Runs work of stage `at` on `elements` elements, and measures it if `is` is true. `work` is called in a single place and
    /// the measuring code is not generic, so each stage adds little machine code.
    #[inline]
    fn measured<R>(&mut self, is: bool, at: usize, elements: u64, work: impl FnOnce() -> R) -> R {
        let begun = if is { Some(self.begun()) } else { None };
        let result = work();
        if let Some(begun) = begun {
            self.ended(at, elements, begun);
        }
        result
    }

    /// Starts measuring a piece of work.
    #[inline(never)]
    fn begun(&mut self) -> Begun {
        Begun::now(self.sample().looks)
    }

    /// Records a piece of work that has just ended.
    #[inline(never)]
    fn ended(&mut self, at: usize, elements: u64, begun: Begun) {
        let (elapsed, spent) = match begun {
            Begun::Look(look) => {
                let spent = look.end();
                (spent.wall, Some(spent))
            }
            Begun::Clock(start) => ((start.elapsed().as_nanos() as u64).saturating_sub(clock_ns()), None),
        };
        self.slowest.worked(at, elapsed);
        let sample = self.sample();
        sample.measured_ns += elapsed;
        sample.measurements += 1;
        let weight = sample.weight;
        let tally = &mut self.tally[at];
        if let Some(spent) = spent {
            tally.looked(&spent, weight);
        }
        tally.sampled[self.unit.sample(self.plans)].ns += elapsed as f64 * weight;
        tally.times.push((elapsed / elements, ((elements as f64 * weight).round() as u64).max(1)));
    }

    /// Runs work on many elements at once, such as stacking a batch or closing a row. Counts no element.
    ///
    /// Long work is measured each time. Short work has a separate sample.
    pub fn timed_exactly<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let begun = self.begun_rare(stage);
        let result = work();
        if let Some(begun) = begun {
            self.ended_rare(stage, begun);
        }
        result
    }

    /// Starts measuring work on many elements, if it is due.
    fn begun_rare(&mut self, stage: StageId) -> Option<Begun> {
        let rare = &mut self.tally.get_mut(self.base + stage.index())?.rare;
        if rare.skip > 0 {
            rare.skip -= 1;
            rare.skipped += 1;
            return None;
        }
        Some(Begun::now(clock::is_due()))
    }

    /// Records work on many elements that has just ended.
    fn ended_rare(&mut self, stage: StageId, begun: Begun) {
        let Some(tally) = self.tally.get_mut(self.base + stage.index()) else { return };
        let stands_for = 1 + u64::from(std::mem::take(&mut tally.rare.skipped));
        let elapsed = match begun {
            Begun::Look(look) => {
                let spent = look.end();
                tally.looked(&spent, stands_for as f64);
                spent.wall
            }
            Begun::Clock(start) => start.elapsed().as_nanos() as u64,
        };
        tally.counts.self_ns += elapsed * stands_for;
        tally.times.push((elapsed, stands_for));
        tally.rare.last_ns = elapsed;
        tally.rare.skip = if elapsed > LONG_NS { 0 } else { self.samples[0].draw(2 * RARE_EVERY - 1) };
    }

    /// Counts elements and payload bytes that a stage yielded.
    #[inline]
    pub fn produced(&mut self, stage: StageId, elements: u64, bytes: u64) {
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.counts.elements += elements;
            tally.counts.bytes += bytes;
        }
    }

    /// Returns the counts of a component whose last stage is number `last` here. Returns `None` if nothing is counted.
    #[inline]
    pub(crate) fn component(&mut self, last: usize) -> Option<&mut ComponentCounts> {
        if self.components.is_empty() {
            self.components.resize(self.tally.len(), ComponentCounts::default());
        }
        self.components.get_mut(self.base + last)
    }

    /// Registers a callback that runs each time before this thread waits for elements from other threads.
    pub(crate) fn before_waiting(&mut self, what: impl FnMut() + Send + 'static) {
        self.waiting.0 = Some(Box::new(what));
    }

    /// Prepares for a wait for an element: marks the reader as idle and runs the registered callback.
    pub(crate) fn will_wait(&mut self) {
        self.works(false);
        if let Some(before) = &mut self.waiting.0 {
            before();
        }
    }

    /// Records that the thread that reads the stream starts to work (`true`) or to wait (`false`).
    pub(crate) fn works(&self, does: bool) {
        if let Some(recorder) = &self.recorder {
            recorder.waits.reader_works(does);
        }
    }

    /// Records that a stage took a chunk, and how long the stage was blocked until the chunk was ready.
    pub(crate) fn taken(&mut self, stage: StageId, chunk: &Taken) {
        let at = self.base + stage.index();
        if let (Some((from, to)), Some(tally)) = (chunk.wait, self.tally.get_mut(at)) {
            tally.counts.wait_ns += (to - from).as_nanos() as u64;
        }
        if let Some(recorder) = &self.recorder {
            recorder.taken(chunk, at);
        }
        if chunk.wait.is_some() {
            self.works(true);
        }
    }

    /// Records the time that `count` elements, starting at `index`, took together.
    pub(crate) fn took(&mut self, index: u64, count: u64, took: Duration) {
        self.slowest.took(index, count, took);
    }

    /// Removes and returns the slowest group since the last call.
    pub(crate) fn take_slowest(&mut self) -> Option<ElementGroup> {
        self.slowest.take()
    }

    /// Adds to `error` the stage whose work failed, unless an earlier stage is already recorded.
    #[cold]
    pub fn blame(&self, stage: StageId, name: &str, error: Error) -> Error {
        error.stage(format!("{} {name}", self.base + stage.index()))
    }

    /// Returns a function that adds this stage to an error as [`blame`](Self::blame) does, without borrowing the context.
    pub fn blamer(&self, stage: StageId, name: &'static str) -> impl Fn(Error) -> Error + Copy + use<> {
        let at = self.base + stage.index();
        move |error| error.stage(format!("{at} {name}"))
    }

    /// Adds the bytes of a sampled element or chunk. The total is estimated from the sample.
    #[inline]
    pub fn sampled_bytes(&mut self, stage: StageId, bytes: u64) {
        let (unit, weight) = (self.unit.sample(self.plans), self.sample().weight);
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.sampled[unit].bytes += bytes as f64 * weight;
        }
    }

    /// Adds to a counted remark of the report, such as `"sequences split"`. Takes a lock, so it is for rare events.
    #[cold]
    pub fn note(&mut self, what: &str, count: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.note(what, count);
        }
    }

    /// Returns true if a recorder receives the notes.
    pub(crate) fn is_heard(&self) -> bool {
        self.recorder.is_some()
    }

    /// Runs a parent whose stage ids start at `offset` within the ids of this adaptor.
    #[inline]
    pub fn within<R>(&mut self, offset: usize, run: impl FnOnce(&mut Self) -> R) -> R {
        self.base += offset;
        let result = run(self);
        self.base -= offset;
        result
    }

    /// Returns true if the present element or chunk of elements is measured.
    #[inline]
    pub fn is_timing(&self) -> bool {
        self.samples[self.unit.sample(self.plans)].on
    }

    /// Starts the next root element, and decides whether the sample contains it.
    #[inline]
    pub(crate) fn begin_element(&mut self) {
        self.unit = Unit::Element;
        self.sample().begin(1);
    }

    /// Starts the next chunk of `elements` root elements, at least one, and decides whether the sample contains it.
    pub(crate) fn begin_chunk(&mut self, elements: u64) {
        self.unit = Unit::Chunk;
        self.sample().begin(elements);
        self.marks.clear();
        self.marks.extend(self.tally.iter().map(|tally| (tally.counts.elements, tally.counts.bytes)));
    }

    /// Returns true for one in [`LOOK_EVERY`] chunks. Chunks that may cost as little as the measurement are measured this rarely.
    #[inline]
    pub(crate) fn looks(&mut self) -> bool {
        self.looks = (self.looks + 1) % LOOK_EVERY;
        self.looks == 0
    }

    /// Reverts the counts of the present chunk. The chunk was interrupted, and its elements are evaluated again.
    pub(crate) fn undo_chunk(&mut self) {
        for (tally, &(elements, bytes)) in self.tally.iter_mut().zip(&self.marks) {
            (tally.counts.elements, tally.counts.bytes) = (elements, bytes);
        }
    }

    /// Discards the present chunk of `elements` elements. Another chunk is begun in its place.
    pub(crate) fn retract_chunk(&mut self, elements: u64) {
        self.undo_chunk();
        self.sample().retract(elements);
    }

    /// Restores the [`base`](Self::base) from before a panic.
    pub(crate) fn settle(&mut self, base: usize) {
        self.base = base;
    }

    /// Hands over the counts if more than 20 ms have passed since the last time.
    pub(crate) fn flush_if_due(&mut self) {
        if self.recorder.is_some() && self.last_flush.elapsed() > Duration::from_millis(20) {
            self.flush();
        }
    }

    /// Hands over the counts to the recorder.
    pub(crate) fn flush(&mut self) {
        if let Some(recorder) = &self.recorder {
            let mut totals = recorder.stages();
            let scales = self.samples.each_mut().map(Sample::close);
            totals.iter_mut().zip(&mut self.tally).for_each(|(total, own)| own.hand_over(scales, self.ahead, total));
            drop(totals);
            if !self.components.is_empty() {
                recorder.add_components(&mut self.components);
            }
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
mod tests;
