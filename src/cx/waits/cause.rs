//! Causes of waits.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::spans::Spans;
use super::{Account, Awaited};
use crate::cx::evaluation::ThreadWaits;

/// Cause of a wait, or of a part of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The first element of a pass was not ready.
    ///
    /// Remedy: the start-up line of the report lists the work done in that time.
    Start,
    /// The first element after a seek, such as to a checkpoint, was not ready.
    ///
    /// Remedy: smaller windows and bins, which are read again.
    Restore,
    /// The stages after the border were at work on the single thread that reads the stream.
    ///
    /// Remedy: do the work before `to_iter`, or in a `map`, which all threads apply.
    Reader,
    /// A chunk waited for a thread or worker: all were busy.
    ///
    /// Remedy: more threads or workers.
    Queue,
    /// A chunk waited for memory: work in progress and finished chunks used the whole budget. Also counts the share of idle workers
    /// that had no memory for other chunks while the awaited chunk was evaluated.
    ///
    /// Remedy: a larger memory budget.
    Memory,
    /// A chunk waited for memory while no work was in progress: views of delivered elements held the whole budget.
    ///
    /// Remedy: drop batches earlier, or copy the data to keep.
    Leases,
    /// A chunk was being evaluated, along with others.
    ///
    /// Remedy: cheaper stages, more threads or workers.
    Evaluation,
    /// A chunk took much longer to evaluate than others, and later chunks were ready.
    ///
    /// Remedy: split or drop the element that the report names, or a larger `buffer`.
    HeadOfLine,
    /// A chunk being evaluated waited for a store's response.
    ///
    /// Remedy: a nearer store, a disk cache for its blocks, or more threads.
    Store,
    /// A worker had died. Its chunk was evaluated again, or no worker was left for the awaited chunk.
    ///
    /// Remedy: the counts in the report show why workers died.
    Death,
    /// A function waited for the interpreter's lock, or the consumer waited for it with its element ready.
    ///
    /// Remedy: worker processes, or functions that release the lock.
    Lock,
    /// An element was ready but not delivered yet, and later elements were not in progress.
    ///
    /// Remedy: fewer, larger batches, or more cores.
    HandOver,
    /// A batch was ready and waited for a device to take it.
    ///
    /// Remedy: send more batches ahead, or fewer bytes.
    Transfer,
}

impl Cause {
    /// All causes.
    pub(crate) const ALL: [Self; 13] = [
        Self::Start,
        Self::Restore,
        Self::Reader,
        Self::Queue,
        Self::Memory,
        Self::Leases,
        Self::Evaluation,
        Self::HeadOfLine,
        Self::Store,
        Self::Death,
        Self::Lock,
        Self::HandOver,
        Self::Transfer,
    ];

    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Restore => "restore",
            Self::Reader => "reader",
            Self::Queue => "queue",
            Self::Memory => "memory",
            Self::Leases => "leases",
            Self::Evaluation => "evaluation",
            Self::HeadOfLine => "head_of_line",
            Self::Store => "store",
            Self::Death => "death",
            Self::Lock => "lock",
            Self::HandOver => "hand_over",
            Self::Transfer => "transfer",
        }
    }

    /// Returns true if the cause is a wait for a chunk of elements, so that an element can be named.
    pub(crate) fn is_of_chunk(self) -> bool {
        matches!(self, Self::Queue | Self::Evaluation | Self::HeadOfLine | Self::Store | Self::Death | Self::Lock)
    }
}

/// Time waited by cause, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares([u64; Cause::ALL.len()]);

impl Shares {
    /// Returns shares with a single cause.
    pub(crate) fn of(cause: Cause, time: Duration) -> Self {
        let mut shares = Self::default();
        shares.count(cause, time);
        shares
    }

    /// Returns true if there was no wait.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sum of all causes.
    pub(crate) fn total(self) -> Duration {
        Duration::from_nanos(self.0.iter().sum())
    }

    /// Truncates the parts, in order of causes, so that their sum is at most `most`.
    pub(crate) fn within(self, most: Duration) -> Self {
        let mut left = most.as_nanos() as u64;
        Self(self.0.map(|part| {
            let part = part.min(left);
            left -= part;
            part
        }))
    }

    /// Multiplies each part by `part`.
    pub(super) fn part(self, part: f64) -> Self {
        Self(self.0.map(|ns| (ns as f64 * part) as u64))
    }

    /// Returns the increase of each part since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        let mut parts = self.0;
        parts.iter_mut().zip(before.0).for_each(|(now, before)| *now = now.saturating_sub(before));
        Self(parts)
    }

    /// Returns the longer part of each cause.
    pub(crate) fn larger(self, other: Self) -> Self {
        let mut parts = self.0;
        parts.iter_mut().zip(other.0).for_each(|(part, other)| *part = (*part).max(other));
        Self(parts)
    }

    /// Multiplies each part by `times`.
    pub(crate) fn times(self, times: u64) -> Self {
        Self(self.0.map(|part| part.saturating_mul(times)))
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, part)| *sum += part);
    }

    pub(crate) fn count(&mut self, cause: Cause, time: Duration) {
        self.0[cause as usize] += time.as_nanos() as u64;
    }

    /// Returns every cause and its time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cause, Duration)> + use<> {
        Cause::ALL.into_iter().zip(self.0.map(Duration::from_nanos))
    }
}

/// Causes of a wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caused {
    pub(super) account: Account,
    /// The chunk with the longest wait, and the length of that wait.
    most: Option<(Duration, Awaited)>,
    /// True if later chunks were still being evaluated when the last awaited chunk was ready.
    busy: bool,
}

impl Caused {
    /// Returns the time by cause.
    pub(super) fn shares(&self) -> Shares {
        self.account.shares
    }

    /// Returns a wait with a single cause.
    pub(super) fn whole(cause: Cause, time: Duration) -> Self {
        Self { account: Account::whole(cause, time), ..Self::default() }
    }

    pub(super) fn count(&mut self, cause: Cause, time: Duration) {
        self.account.shares.count(cause, time);
    }

    /// Counts the time from ready to taken as hand-over. If later chunks are in progress, counts it as evaluation, because a faster
    /// consumer would wait for those chunks instead.
    pub(super) fn handed_over(&mut self, time: Duration) {
        self.count(if self.busy { Cause::Evaluation } else { Cause::HandOver }, time);
    }

    /// Counts a wait of the reader for a chunk, from `begin` to `end`. `holds` are the causes that kept chunks from being assigned.
    pub(super) fn chunk(&mut self, awaited: &Awaited, begin: Instant, end: Instant, holds: &Spans) {
        let made = &awaited.made;
        let begun = made.lost.map_or(made.begun, |(begun, _)| begun).clamp(begin, end);
        let queued = holds.between(begin, begun, |hold, time| self.count(hold.cause, time));
        self.count(Cause::Queue, queued);
        let done = made.done.clamp(begun, end);
        if let Some((_, died)) = made.lost {
            let died = died.clamp(begun, done);
            self.count(Cause::Evaluation, died - begun);
            self.count(Cause::Death, done - died);
        } else {
            // The time of its waits within the evaluation is unknown, so they are spread evenly over it.
            let (time, (store, lock)) = (done - begun, made.off.within(made.took()));
            let store = part_of(time, store, made.took());
            let lock = part_of(time, lock, made.took()).min(time - store);
            self.count(Cause::Store, store);
            self.count(Cause::Lock, lock);
            let rest = time - store - lock;
            if awaited.holds_up {
                self.account.count_held_up(made.slowest.and_then(|group| group.stage), rest)
            } else {
                // With memory for every worker, the chunk would have been begun sooner.
                let mut idle = Duration::ZERO;
                holds.between(begun, done, |hold, time| {
                    idle += if hold.cause == Cause::Memory { time.mul_f64(hold.idle) } else { Duration::ZERO };
                });
                let memory = part_of(rest, idle, time);
                self.count(Cause::Memory, memory);
                self.count(Cause::Evaluation, rest - memory);
            }
            if !store.is_zero() {
                self.account.store.add(StoreUse::of(&made.off));
            }
        }
        self.busy = !awaited.idle;
        self.handed_over(end - done);
        let time = end - begin;
        if self.most.as_ref().is_none_or(|(most, _)| *most < time) {
            self.most = Some((time, *awaited));
        }
    }

    /// Converts the wait to its recorded form. `at` is its time after the start of the run.
    pub(super) fn into_long(self, batch: u64, at: Duration, wait: Duration) -> LongWait {
        let cause = self.shares().iter().max_by_key(|(_, time)| *time).map_or(Cause::Reader, |(cause, _)| cause);
        let chunk = self.most.filter(|_| cause.is_of_chunk()).map(|(_, awaited)| awaited);
        let group = chunk.and_then(|chunk| chunk.made.slowest);
        let who = chunk.map(|chunk| chunk.made.who);
        LongWait {
            batch,
            at_s: at.as_secs_f64(),
            wait_s: wait.as_secs_f64(),
            cause,
            border: chunk.map(|chunk| chunk.border),
            stage: group.and_then(|group| group.stage).map(|stage| stage as usize),
            element: group.map(|group| group.index),
            elements: group.map(|group| group.count),
            took_s: group.map(|group| group.took.as_secs_f64()),
            worker: who.map(|who| who.number),
            host: None,
            host_number: who.and_then(|who| who.host),
            store: Some(self.account.store).filter(|_| cause == Cause::Store),
            suspect: WaitSuspect::default(),
        }
    }
}

/// Scales a time by `some / all`, to at most the time.
fn part_of(time: Duration, some: Duration, all: Duration) -> Duration {
    time.mul_f64(some.as_secs_f64() / all.as_secs_f64().max(1e-9)).min(time)
}

/// Use of stores by chunks that the consumer waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreUse {
    /// Blocks that were waited for.
    pub requests: u64,
    /// Repeated requests for the blocks.
    pub retries: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
}

impl StoreUse {
    pub(crate) fn of(off: &ThreadWaits) -> Self {
        Self { requests: off.requests, retries: off.retries, bytes: off.store_bytes }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.bytes += other.bytes;
    }
}

/// A wait of the consumer that is among the longest of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongWait {
    /// Number of the awaited batch, counted from 0 in this run.
    pub batch: u64,
    /// Start of the wait, in seconds after the start of the run.
    pub at_s: f64,
    /// Length of the wait, in seconds.
    pub wait_s: f64,
    /// Main cause of the wait.
    pub cause: Cause,
    /// Id of the border after the stages that evaluate the awaited chunk.
    pub border: Option<usize>,
    /// Id of the stage that took longest, if it was measured.
    pub stage: Option<usize>,
    /// Index of the slowest element, or of the first element of the slowest group evaluated together. Counted before the border.
    pub element: Option<u64>,
    /// Number of elements evaluated together.
    pub elements: Option<u64>,
    /// Evaluation time of these elements, in seconds.
    pub took_s: Option<f64>,
    /// Number of the thread or worker that evaluated the elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// Name of the worker's machine. `None` for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip)]
    pub(crate) host_number: Option<u16>,
    /// Data received from stores meanwhile, if stores were the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreUse>,
    /// Record that may have taken long.
    #[serde(flatten)]
    pub suspect: WaitSuspect,
}

/// The record that probably caused a long wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitSuspect {
    /// Index of the element with the largest record among elements evaluated together. `None` if no record is larger than all others.
    pub largest: Option<u64>,
    /// Source record of the element, as text. For several elements, the record of the largest if known, otherwise of the first.
    pub record: Option<String>,
    /// Stored bytes of that record, if known.
    pub record_bytes: Option<u64>,
}
