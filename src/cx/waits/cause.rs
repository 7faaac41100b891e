//! Causes of waits.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Awaited, Piece};

/// Cause of a wait, or of a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// The first element of a pass was not there yet.
    Start,
    /// The stages behind the border were at work, on the one thread that reads the stream.
    Reader,
    /// A chunk waited for somebody who evaluates it: all were busy, or had no memory for what comes of it.
    Queue,
    /// A chunk was being evaluated, and others beside it.
    Evaluation,
    /// A chunk was being evaluated that took much longer than others do, and what was asked for behind it was there.
    HeadOfLine,
    /// A chunk was done, and not yet where it was waited for.
    HandOver,
}

impl Cause {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Start, Self::Reader, Self::Queue, Self::Evaluation, Self::HeadOfLine, Self::HandOver];

    /// The name, as programs read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Reader => "reader",
            Self::Queue => "queue",
            Self::Evaluation => "evaluation",
            Self::HeadOfLine => "head_of_line",
            Self::HandOver => "hand_over",
        }
    }
}

/// Time waited by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares([Duration; Cause::ALL.len()]);

impl Shares {
    /// All of it because of one cause.
    pub(crate) fn of(cause: Cause, time: Duration) -> Self {
        let mut shares = Self::default();
        shares.count(cause, time);
        shares
    }

    /// The sum.
    #[cfg(test)]
    pub(crate) fn total(self) -> Duration {
        self.0.iter().sum()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, part)| *sum += part);
    }

    fn count(&mut self, cause: Cause, time: Duration) {
        self.0[cause as usize] += time;
    }

    /// Every cause, and the time that was waited because of it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cause, Duration)> + use<> {
        Cause::ALL.into_iter().zip(self.0)
    }
}

/// Causes of one wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caused {
    shares: Shares,
    /// The chunk that it waited for longest, and for how long.
    most: Option<(Duration, Awaited)>,
}

impl Caused {
    /// The time by cause.
    pub(super) fn shares(&self) -> Shares {
        self.shares
    }

    /// A wait for the first element.
    pub(super) fn start(time: Duration) -> Self {
        let mut caused = Self::default();
        caused.shares.count(Cause::Start, time);
        caused
    }

    /// The reader was at work for so long.
    pub(super) fn reader(&mut self, time: Duration) {
        self.shares.count(Cause::Reader, time);
    }

    /// The reader waited for a chunk between these times.
    pub(super) fn chunk(&mut self, awaited: &Awaited, begin: Instant, end: Instant) {
        let (begun, done) = awaited.evaluated;
        let (begun, done) = (begun.clamp(begin, end), done.clamp(begin, end));
        self.shares.count(Cause::Queue, begun - begin);
        let cause = if awaited.holds_up { Cause::HeadOfLine } else { Cause::Evaluation };
        self.shares.count(cause, done.saturating_duration_since(begun));
        self.shares.count(Cause::HandOver, end - done.max(begun));
        let time = end - begin;
        if self.most.as_ref().is_none_or(|(most, _)| *most < time) {
            self.most = Some((time, *awaited));
        }
    }

    /// The wait as it is kept: `at` after the start of the run.
    pub(super) fn into_long(self, batch: u64, at: Duration, wait: Duration) -> LongWait {
        let cause = self.shares.iter().max_by_key(|(_, time)| *time).map_or(Cause::Reader, |(cause, _)| cause);
        let chunk = self.most.filter(|_| !matches!(cause, Cause::Reader | Cause::Start)).map(|(_, awaited)| awaited);
        let piece: Option<Piece> = chunk.and_then(|chunk| chunk.slowest);
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
            largest: None,
            record: None,
            record_bytes: None,
        }
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
    /// Of elements that were evaluated together, that whose record is larger than those of all others, if there is one.
    pub largest: Option<u64>,
    /// The record of the source that the element is made of, or the largest, in words, where that is known; else that of the first.
    pub record: Option<String>,
    /// Bytes that it takes up where it is stored, where that is known.
    pub record_bytes: Option<u64>,
}
