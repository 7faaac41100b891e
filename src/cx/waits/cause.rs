//! Causes of waits.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::spans::Spans;
use super::{Account, Awaited};
use crate::cx::made::Off;
use crate::cx::piece::Piece;

/// Cause of a wait, or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The first element of a pass was not there yet.
    Start,
    /// The first element behind a place that was gone to, a checkpoint's or another, was not there yet.
    Restore,
    /// The stages behind the border were at work, on the one thread that reads the stream.
    Reader,
    /// A chunk waited for somebody who evaluates it: all were busy.
    Queue,
    /// A chunk waited for memory: what is under way or lies ready had all that the budget has. Or one was being evaluated, and for others
    /// there was no memory: as large a part of it as hands were free.
    Memory,
    /// A chunk waited for memory, and nothing was under way: views of elements that were handed over held all of it.
    Leases,
    /// A chunk was being evaluated, and others beside it.
    Evaluation,
    /// A chunk was being evaluated that took much longer than others do, and what was asked for behind it was there.
    HeadOfLine,
    /// A chunk was being evaluated, and waited for a store to answer.
    Store,
    /// A worker had died: what it had at hand was made again, or what waited for it had nobody else.
    Death,
    /// A function waited for the interpreter's lock, or the consumer did when its element was there.
    Lock,
    /// An element was there, and not yet where it was waited for, while nobody was at work on those behind it.
    HandOver,
    /// A batch was there, and waited for a device to take it.
    Transfer,
}

impl Cause {
    /// All of them.
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

    /// The name, as programs read it.
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

    /// Whether a chunk of elements was what was waited for, so that one of them may be named.
    pub(crate) fn is_of_chunk(self) -> bool {
        matches!(self, Self::Queue | Self::Evaluation | Self::HeadOfLine | Self::Store | Self::Death | Self::Lock)
    }
}

/// Time waited by cause, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares([u64; Cause::ALL.len()]);

impl Shares {
    /// All of it because of one cause.
    pub(crate) fn of(cause: Cause, time: Duration) -> Self {
        let mut shares = Self::default();
        shares.count(cause, time);
        shares
    }

    /// Whether nothing was waited for.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The sum.
    pub(crate) fn total(self) -> Duration {
        Duration::from_nanos(self.0.iter().sum())
    }

    /// Parts of it that are no longer than `most` together.
    pub(crate) fn within(self, most: Duration) -> Self {
        let mut left = most.as_nanos() as u64;
        Self(self.0.map(|part| {
            let part = part.min(left);
            left -= part;
            part
        }))
    }

    /// Such a part of it.
    pub(super) fn part(self, part: f64) -> Self {
        Self(self.0.map(|ns| (ns as f64 * part) as u64))
    }

    /// Time by which each part is more than `before`.
    #[cfg(any(test, feature = "python", feature = "pjrt"))]
    pub(crate) fn since(self, before: Self) -> Self {
        let mut parts = self.0;
        parts.iter_mut().zip(before.0).for_each(|(now, before)| *now = now.saturating_sub(before));
        Self(parts)
    }

    /// The longer part of each cause.
    #[cfg(any(test, feature = "python", feature = "pjrt"))]
    pub(crate) fn larger(self, other: Self) -> Self {
        let mut parts = self.0;
        parts.iter_mut().zip(other.0).for_each(|(part, other)| *part = (*part).max(other));
        Self(parts)
    }

    /// So many times as long.
    pub(crate) fn times(self, times: u64) -> Self {
        Self(self.0.map(|part| part.saturating_mul(times)))
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, part)| *sum += part);
    }

    pub(crate) fn count(&mut self, cause: Cause, time: Duration) {
        self.0[cause as usize] += time.as_nanos() as u64;
    }

    /// Every cause, and the time that was waited because of it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cause, Duration)> + use<> {
        Cause::ALL.into_iter().zip(self.0.map(Duration::from_nanos))
    }
}

/// Causes of one wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caused {
    pub(super) account: Account,
    /// The chunk that it waited for longest, and for how long.
    most: Option<(Duration, Awaited)>,
    /// Whether others were still at work on what comes behind the chunk that it waited for last.
    busy: bool,
}

impl Caused {
    /// The time by cause.
    pub(super) fn shares(&self) -> Shares {
        self.account.shares
    }

    /// A wait that has one cause.
    pub(super) fn whole(cause: Cause, time: Duration) -> Self {
        Self { account: Account::whole(cause, time), ..Self::default() }
    }

    pub(super) fn count(&mut self, cause: Cause, time: Duration) {
        self.account.shares.count(cause, time);
    }

    /// Something that was there was not taken for so long. Where others are at work meanwhile, who takes it at once waits for those instead.
    pub(super) fn handed_over(&mut self, time: Duration) {
        self.count(if self.busy { Cause::Evaluation } else { Cause::HandOver }, time);
    }

    /// The reader waited for a chunk between these times, while there were such causes to hand nothing out.
    pub(super) fn chunk(&mut self, awaited: &Awaited, begin: Instant, end: Instant, holds: &Spans) {
        let made = &awaited.made;
        let begun = made.lost.map_or(made.begun, |(begun, _)| begun).clamp(begin, end);
        let queued = holds.between(begin, begun, |hold, time| self.count(hold.cause, time));
        self.count(Cause::Queue, queued);
        let done = made.done.clamp(begun, end);
        match made.lost {
            Some((_, died)) => {
                let died = died.clamp(begun, done);
                self.count(Cause::Evaluation, died - begun);
                self.count(Cause::Death, done - died);
            }
            None => {
                // Nobody knows when in its evaluation it waited: every part of that counts alike.
                let (time, (store, lock)) = (done - begun, made.off.within(made.took()));
                let store = part_of(time, store, made.took());
                let lock = part_of(time, lock, made.took()).min(time - store);
                self.count(Cause::Store, store);
                self.count(Cause::Lock, lock);
                let rest = time - store - lock;
                match awaited.holds_up {
                    true => self.account.count_held_up(made.slowest.and_then(|piece| piece.stage), rest),
                    false => {
                        // Had all hands had memory, it would have been begun sooner.
                        let mut idle = Duration::ZERO;
                        holds.between(begun, done, |hold, time| {
                            idle += if hold.cause == Cause::Memory { time.mul_f64(hold.idle) } else { Duration::ZERO };
                        });
                        let memory = part_of(rest, idle, time);
                        self.count(Cause::Memory, memory);
                        self.count(Cause::Evaluation, rest - memory);
                    }
                }
                if !store.is_zero() {
                    self.account.store.add(StoreUse::of(&made.off));
                }
            }
        }
        self.busy = !awaited.idle;
        self.handed_over(end - done);
        let time = end - begin;
        if self.most.as_ref().is_none_or(|(most, _)| *most < time) {
            self.most = Some((time, *awaited));
        }
    }

    /// The wait as it is kept: `at` after the start of the run.
    pub(super) fn into_long(self, batch: u64, at: Duration, wait: Duration) -> LongWait {
        let cause = self.shares().iter().max_by_key(|(_, time)| *time).map_or(Cause::Reader, |(cause, _)| cause);
        let chunk = self.most.filter(|_| cause.is_of_chunk()).map(|(_, awaited)| awaited);
        let piece: Option<Piece> = chunk.and_then(|chunk| chunk.made.slowest);
        let who = chunk.map(|chunk| chunk.made.who);
        LongWait {
            batch,
            at_s: at.as_secs_f64(),
            wait_s: wait.as_secs_f64(),
            cause,
            border: chunk.map(|chunk| chunk.border),
            stage: piece.and_then(|piece| piece.stage).map(|stage| stage as usize),
            element: piece.map(|piece| piece.index),
            elements: piece.map(|piece| piece.count),
            took_s: piece.map(|piece| piece.took.as_secs_f64()),
            worker: who.map(|who| who.number),
            host: None,
            host_number: who.and_then(|who| who.host),
            store: Some(self.account.store).filter(|_| cause == Cause::Store),
            largest: None,
            record: None,
            record_bytes: None,
        }
    }
}

/// The part of a time that `some` is of `all`.
fn part_of(time: Duration, some: Duration, all: Duration) -> Duration {
    time.mul_f64(some.as_secs_f64() / all.as_secs_f64().max(1e-9)).min(time)
}

/// Use of stores in chunks that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreUse {
    /// Blocks that were waited for.
    pub requests: u64,
    /// Requests that were repeated for them.
    pub retries: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl StoreUse {
    pub(crate) fn of(off: &Off) -> Self {
        Self { requests: off.requests, retries: off.retries, bytes: off.store_bytes }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.bytes += other.bytes;
    }
}

/// One of the longest waits of the consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongWait {
    /// The number of the batch that was waited for, counted from 0 in this run.
    pub batch: u64,
    /// Seconds after the start of the run.
    pub at_s: f64,
    /// Seconds that it took.
    pub wait_s: f64,
    /// The cause of most of it.
    pub cause: Cause,
    /// The border that the chunk stands in front of which was waited for, by id.
    pub border: Option<usize>,
    /// The stage that took longest of that, by id, where it was measured.
    pub stage: Option<usize>,
    /// The index of the element that took longest of it, or of the first of those that were evaluated together; counted in front of the border.
    pub element: Option<u64>,
    /// Elements that were evaluated together.
    pub elements: Option<u64>,
    /// Seconds that those took.
    pub took_s: Option<f64>,
    /// The number of the thread, or of the worker, that evaluated them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<u32>,
    /// The machine that it ran on, if that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(skip)]
    pub(crate) host_number: Option<u16>,
    /// What was got of stores meanwhile, if those were the cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreUse>,
    /// Of elements that were evaluated together, that whose record is larger than those of all others, if there is one.
    pub largest: Option<u64>,
    /// The record of the source that the element is made of, or the largest, in words, where that is known; else that of the first.
    pub record: Option<String>,
    /// Bytes that it takes up where it is stored, where that is known.
    pub record_bytes: Option<u64>,
}
