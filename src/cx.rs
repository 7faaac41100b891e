//! The context that is threaded through every stage while it runs: counters that cost next to nothing.
//!
//! A [`Cx`] belongs to one thread. It counts elements always, and measures self time of a sample of them: all where an
//! element takes 50 µs or more, fewer the cheaper they are, so that measuring costs a small part of 1 %. Each measured
//! element stands for those before it that were not. Where elements are evaluated in chunks, the sample is of chunks, and a
//! stage's part of one is measured as a whole. Of a sample of the measured ones it is looked at how much was time on a core, and
//! how much was waiting: for a disk, a network, the interpreter's lock. Its owner hands the counts over to the shared [`Recorder`] at times of its own
//! choosing.

mod beside;
pub(crate) mod clock;
mod given;
mod local;
mod made;
mod piece;
mod recorder;
mod records;
mod sample;
pub(crate) mod turn;
mod waits;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::clock::Begun;
pub(crate) use self::given::Given;
use self::local::{Local, UNITS, Unit};
#[cfg(feature = "store")]
pub(crate) use self::made::waited_for_store;
pub(crate) use self::made::{Made, Off, Watch, Who, number_thread};
pub use self::piece::Piece;
use self::piece::Pieces;
#[cfg(feature = "cli")]
pub(crate) use self::recorder::Command;
pub(crate) use self::recorder::HostCounts;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use self::recorder::Tally;
pub use self::recorder::{Counts, Recorder, StageTally};
pub(crate) use self::records::{
    Batch, Chunk, Fill, History, LEVELS, News, Seen, Snapshot, Stretch, Taken, WorkerMemory,
};
use self::sample::{Sample, clock_ns};
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(crate) use self::waits::Hold;
pub(crate) use self::waits::{Account, Shares};
pub use self::waits::{Cause, LongWait, StoreUse};
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

/// Of chunks that may be as cheap as a look at the clock, one in this many is looked at.
const LOOK_EVERY: u32 = 16;
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
    unit: Unit,
    /// Whether elements stand for others.
    plans: bool,
    samples: [Sample; UNITS],
    looks: u32,
    /// Counts when the present chunk began: elements and bytes of each stage.
    marks: Vec<(u64, u64)>,
    last_flush: Instant,
    waiting: Waiting,
    pieces: Box<Pieces>,
    member: Option<[u64; 2]>,
}

/// Things to do before this thread waits for others.
#[derive(Default)]
struct Waiting(Option<Box<dyn FnMut() + Send>>);

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Some" } else { "None" })
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
        let stages = recorder.stages().len();
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
            pieces: Box::default(),
            member: None,
        }
    }

    /// The element of a record that came last, where the keys of stages are noted: its index and its border. `None` for one of several of its record.
    #[inline]
    pub(crate) fn member(&self) -> Option<[u64; 2]> {
        self.member
    }

    /// Says which element of which record comes next.
    #[inline]
    pub(crate) fn set_member(&mut self, member: Option<[u64; 2]>) {
        self.member = member;
    }

    /// The sample that is taken now.
    #[inline]
    fn sample(&mut self) -> &mut Sample {
        &mut self.samples[self.unit.sample(self.plans)]
    }

    /// Runs a part of a plan: the elements that begin meanwhile stand for others.
    pub(crate) fn planning<R>(&mut self, plan: impl FnOnce(&mut Self) -> R) -> R {
        let (before, unit) = (std::mem::replace(&mut self.plans, true), self.unit);
        let result = plan(self);
        (self.plans, self.unit) = (before, unit);
        result
    }

    /// Runs the own work of a stage for one element, and counts it; what its parents do does not belong inside.
    #[inline]
    pub fn timed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        let is_counted = self.tally.get_mut(at).map(|tally| tally.counts.elements += 1).is_some();
        self.measured(is_counted && self.is_timing(), at, 1, work)
    }

    /// Runs work of a stage that takes in an element but may let none out: sampled like [`timed`](Self::timed); the stage
    /// counts what leaves it by [`produced`](Self::produced).
    #[inline]
    pub fn consumed<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        self.measured(self.is_timing() && at < self.tally.len(), at, 1, work)
    }

    /// [`timed`](Self::timed) for the own work of a stage on many elements: see
    /// [`MapDataset::get_many`](crate::MapDataset::get_many).
    #[inline]
    pub fn timed_many<R>(&mut self, stage: StageId, elements: usize, work: impl FnOnce() -> R) -> R {
        self.produced(stage, elements as u64, 0);
        self.consumed_many(stage, elements, work)
    }

    /// [`consumed`](Self::consumed) for work on many elements.
    #[inline]
    pub fn consumed_many<R>(&mut self, stage: StageId, elements: usize, work: impl FnOnce() -> R) -> R {
        let at = self.base + stage.index();
        self.measured(elements > 0 && self.is_timing() && at < self.tally.len(), at, elements as u64, work)
    }

    /// Runs work of the stage at that place on elements, measured or not. The work is called in one place, and what does not depend on it
    /// is apart, so that a program has each of them once for a stage.
    #[inline]
    fn measured<R>(&mut self, is: bool, at: usize, elements: u64, work: impl FnOnce() -> R) -> R {
        let begun = if is { Some(self.begun()) } else { None };
        let result = work();
        if let Some(begun) = begun {
            self.ended(at, elements, begun);
        }
        result
    }

    /// Begins to measure a piece of work.
    #[inline(never)]
    fn begun(&mut self) -> Begun {
        Begun::now(self.sample().looks)
    }

    /// Counts a piece of work that has just ended.
    #[inline(never)]
    fn ended(&mut self, at: usize, elements: u64, begun: Begun) {
        let (elapsed, spent) = match begun {
            Begun::Look(look) => {
                let spent = look.end();
                (spent.wall, Some(spent))
            }
            Begun::Clock(start) => ((start.elapsed().as_nanos() as u64).saturating_sub(clock_ns()), None),
        };
        self.pieces.worked(at, elapsed);
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

    /// Runs work that belongs to many elements (stacking a batch, closing a row): measured each time where it is long, on a
    /// sample of its own where it is short. Counts no element.
    pub fn timed_exactly<R>(&mut self, stage: StageId, work: impl FnOnce() -> R) -> R {
        let begun = self.begun_rare(stage);
        let result = work();
        if let Some(begun) = begun {
            self.ended_rare(stage, begun);
        }
        result
    }

    /// Begins to measure a piece of work that belongs to many elements, if it is its turn.
    fn begun_rare(&mut self, stage: StageId) -> Option<Begun> {
        let rare = &mut self.tally.get_mut(self.base + stage.index())?.rare;
        if rare.skip > 0 {
            rare.skip -= 1;
            rare.skipped += 1;
            return None;
        }
        Some(Begun::now(clock::is_due()))
    }

    /// Counts a piece of work that belongs to many elements and has just ended.
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
        self.works(false);
        if let Some(before) = &mut self.waiting.0 {
            before();
        }
    }

    /// The thread that reads the stream is at work from now on, or waits.
    pub(crate) fn works(&self, does: bool) {
        if let Some(recorder) = &self.recorder {
            recorder.waits().reader_works(does);
        }
    }

    /// Notes that a stage took a chunk, and for how long it was blocked until that was there.
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

    /// Notes that elements `index` and so forth, `count` of them, took so long, together.
    pub(crate) fn took(&mut self, index: u64, count: u64, took: Duration) {
        self.pieces.took(index, count, took);
    }

    /// Takes out what took longest since this was called last.
    pub(crate) fn take_slowest(&mut self) -> Option<Piece> {
        self.pieces.take()
    }

    /// Adds to `error` the stage whose own work failed, unless a stage before it has said so already.
    #[cold]
    pub fn blame(&self, stage: StageId, name: &str, error: Error) -> Error {
        error.stage(format!("{} {name}", self.base + stage.index()))
    }

    /// The same for errors that come up while this is in use.
    pub fn blamer(&self, stage: StageId, name: &'static str) -> impl Fn(Error) -> Error + Copy + use<> {
        let at = self.base + stage.index();
        move |error| error.stage(format!("{at} {name}"))
    }

    /// Adds the bytes of an element, or of a whole chunk, of the sample; the total is estimated from it.
    #[inline]
    pub fn sampled_bytes(&mut self, stage: StageId, bytes: u64) {
        let (unit, weight) = (self.unit.sample(self.plans), self.sample().weight);
        if let Some(tally) = self.tally.get_mut(self.base + stage.index()) {
            tally.sampled[unit].bytes += bytes as f64 * weight;
        }
    }

    /// Adds to a counted remark of the report, such as `"sequences split"`. For rare events: it takes a lock.
    #[cold]
    pub fn note(&mut self, what: &str, count: u64) {
        if let Some(recorder) = &self.recorder {
            recorder.note(what, count);
        }
    }

    /// Whether anybody hears what is noted.
    #[cfg(feature = "store")]
    pub(crate) fn is_heard(&self) -> bool {
        self.recorder.is_some()
    }

    /// Runs a parent whose stage ids start at `offset` within this adaptor's.
    #[inline]
    pub fn within<R>(&mut self, offset: usize, run: impl FnOnce(&mut Self) -> R) -> R {
        self.base += offset;
        let result = run(self);
        self.base -= offset;
        result
    }

    /// Whether the present element, or chunk of elements, is measured.
    #[inline]
    pub fn is_timing(&self) -> bool {
        self.samples[self.unit.sample(self.plans)].on
    }

    /// Starts with the next root element: decides whether it belongs to the sample.
    #[inline]
    pub(crate) fn begin_element(&mut self) {
        self.unit = Unit::Element;
        self.sample().begin(1);
    }

    /// Starts with the next chunk of so many root elements, at least one: decides whether it belongs to the sample.
    pub(crate) fn begin_chunk(&mut self, elements: u64) {
        self.unit = Unit::Chunk;
        self.sample().begin(elements);
        self.marks.clear();
        self.marks.extend(self.tally.iter().map(|tally| (tally.counts.elements, tally.counts.bytes)));
    }

    /// Whether to look at what a chunk takes that may be as cheap as looking.
    #[inline]
    pub(crate) fn looks(&mut self) -> bool {
        self.looks = (self.looks + 1) % LOOK_EVERY;
        self.looks == 0
    }

    /// Takes back what the present chunk has counted so far: it broke off, and its elements are evaluated again.
    pub(crate) fn undo_chunk(&mut self) {
        for (tally, &(elements, bytes)) in self.tally.iter_mut().zip(&self.marks) {
            (tally.counts.elements, tally.counts.bytes) = (elements, bytes);
        }
    }

    /// The present chunk of so many elements came to nothing: another is begun in its place.
    pub(crate) fn retract_chunk(&mut self, elements: u64) {
        self.undo_chunk();
        self.sample().retract(elements);
    }

    /// First stage id of the present part of the pipeline.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Goes back to where it was before a panic: see [`base`](Self::base).
    pub(crate) fn settle(&mut self, base: usize) {
        self.base = base;
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
            let mut totals = recorder.stages();
            let scales = self.samples.each_mut().map(Sample::close);
            totals.iter_mut().zip(&mut self.tally).for_each(|(total, own)| own.hand_over(scales, self.ahead, total));
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
