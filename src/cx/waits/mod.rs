//! Waits of the consumer, each split exactly among what caused it.
//!
//! The thread that reads the stream notes every wait for a chunk of root elements: from when to when, and when that was begun and
//! done. Chunks come in order, so while the consumer waits, either the reader works, or it waits for *one* chunk, and that for whoever evaluates it.
//! A wait of the consumer is laid over those, and every part of it has one cause: the parts add up to the wait.

mod cause;
mod longest;
mod piece;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use self::cause::{Cause, LongWait};
pub(crate) use self::cause::{Caused, Shares};
use self::longest::Longest;
pub use self::piece::Piece;
pub(crate) use self::piece::Pieces;
use super::records::Given;
use crate::sync::Locked;

/// Waits of the reader that are kept until a wait of the consumer is laid over them: more than there are chunks in a batch.
const KEPT: usize = 4096;
/// A wait that is shorter is none that anybody would look into.
const LONG: Duration = Duration::from_millis(1);

/// A chunk of root elements that the reader waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// Time at which the reader began to wait, and at which it had it.
    pub(crate) wait: (Instant, Instant),
    /// Time at which its evaluation began and ended.
    pub(crate) evaluated: (Instant, Instant),
    /// Whether it took much longer than others, and most of what was asked for behind it had come: others had nothing left that they might do.
    pub(crate) holds_up: bool,
    /// The border that it stands in front of, by id.
    pub(crate) border: usize,
    /// The piece of it that took longest.
    pub(crate) slowest: Option<Piece>,
}

/// Log of a run's waits.
#[derive(Debug)]
pub(crate) struct Waits {
    start: Instant,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Waits of the reader, in order.
    reader: VecDeque<Awaited>,
    shares: Shares,
    longest: Longest,
}

impl Default for Waits {
    fn default() -> Self {
        Self { start: Instant::now(), log: Mutex::default() }
    }
}

impl Waits {
    /// Notes that the reader waited for a chunk.
    pub(crate) fn note(&self, awaited: Awaited) {
        let mut log = self.log.locked();
        if log.reader.len() == KEPT {
            log.reader.pop_front();
        }
        log.reader.push_back(awaited);
    }

    /// Time from which waits are counted.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Splits the wait of the consumer for what it was given; the first of a pass is start-up, and nothing else.
    pub(crate) fn explain(&self, given: &Given, is_first: bool) -> Shares {
        let (from, to) = (given.asked, given.given);
        let mut log = self.log.locked();
        // The consumer asks for one after the other: what was over before is asked about no more.
        while log.reader.front().is_some_and(|awaited| awaited.wait.1 <= from) {
            log.reader.pop_front();
        }
        let caused = if is_first { Caused::start(to - from) } else { split(&log.reader, from, to) };
        let shares = caused.shares();
        log.shares.add(shares);
        if to - from >= LONG && !is_first {
            let wait = caused.into_long(given.first, from.saturating_duration_since(self.start), to - from);
            log.longest.keep(wait);
        }
        shares
    }

    /// The causes of all waits so far.
    pub(crate) fn causes(&self) -> Shares {
        self.log.locked().shares
    }

    /// The longest waits so far, the longest first; so many at most.
    pub(crate) fn longest(&self, most: usize) -> Vec<LongWait> {
        self.log.locked().longest.first(most)
    }
}

/// Lays the wait between these times over those of the reader.
fn split(reader: &VecDeque<Awaited>, from: Instant, to: Instant) -> Caused {
    let mut caused = Caused::default();
    let mut at = from;
    for awaited in reader {
        let (begin, end) = (awaited.wait.0.max(at), awaited.wait.1.min(to));
        if begin >= end {
            continue;
        }
        caused.reader(begin - at);
        caused.chunk(awaited, begin, end);
        at = end;
    }
    caused.reader(to.saturating_duration_since(at));
    caused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(start: Instant, wait: (u64, u64), evaluated: (u64, u64), holds_up: bool) -> Awaited {
        let at = |(from, to)| (start + Duration::from_millis(from), start + Duration::from_millis(to));
        let slowest =
            Some(Piece { index: 7, count: 1, took: Duration::from_millis(evaluated.1 - evaluated.0), stage: Some(2) });
        Awaited { wait: at(wait), evaluated: at(evaluated), holds_up, border: 3, slowest }
    }

    fn explain(waits: &Waits, asked: Instant, given: Instant, is_first: bool) {
        let given = Given { first: 0, count: 1, ready: None, asked, given, made: None };
        let shares = waits.explain(&given, is_first);
        assert_eq!(shares.total(), given.given - asked);
    }

    /// Milliseconds of each cause, in the order of [`Cause`].
    fn shares(waits: &Waits) -> Vec<(Cause, u64)> {
        let shares = waits.causes();
        shares
            .iter()
            .filter(|(_, time)| !time.is_zero())
            .map(|(cause, time)| (cause, time.as_millis() as u64))
            .collect()
    }

    #[test]
    fn a_wait_is_split_exactly() {
        let waits = Waits::default();
        let start = waits.start;
        let at = |ms| start + Duration::from_millis(ms);
        waits.note(awaited(start, (10, 30), (15, 28), false));
        waits.note(awaited(start, (40, 90), (5, 85), true));
        explain(&waits, at(0), at(8), true);
        // 2 ms of the reader, 5 until the chunk was begun, 13 evaluated, 2 handed over; 10 of the reader; 45 evaluated, 5 handed over; 5 of the reader.
        explain(&waits, at(8), at(95), false);
        let told = shares(&waits);
        assert_eq!(
            told,
            [
                (Cause::Start, 8),
                (Cause::Reader, 17),
                (Cause::Queue, 5),
                (Cause::Evaluation, 13),
                (Cause::HeadOfLine, 45),
                (Cause::HandOver, 7)
            ]
        );
        assert_eq!(told.iter().map(|(_, ms)| ms).sum::<u64>(), 95);
        let longest = waits.longest(16);
        assert_eq!((longest.len(), longest[0].cause, longest[0].element), (1, Cause::HeadOfLine, Some(7)));
        assert_eq!((longest[0].stage, longest[0].border), (Some(2), Some(3)));
    }

    #[test]
    fn what_was_over_before_is_no_cause_and_nothing_is_counted_twice() {
        let waits = Waits::default();
        let start = waits.start;
        let at = |ms| start + Duration::from_millis(ms);
        waits.note(awaited(start, (0, 20), (0, 20), false));
        explain(&waits, at(10), at(15), false);
        explain(&waits, at(18), at(30), false);
        explain(&waits, at(40), at(50), false);
        assert_eq!(shares(&waits), [(Cause::Reader, 20), (Cause::Evaluation, 7)]);
    }

    #[test]
    fn the_longest_are_kept_and_memory_is_bounded() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        for n in 0..3 * KEPT as u64 {
            waits.note(awaited(waits.start, (1_000_000 + n, 1_000_001 + n), (0, 1), false));
        }
        assert_eq!(waits.log.locked().reader.len(), KEPT);
        for n in 1..100 {
            explain(&waits, at(1000 * n), at(1000 * n + n), false);
        }
        let longest: Vec<_> = waits.longest(16).iter().map(|wait| (wait.wait_s * 1000.0).round() as u64).collect();
        assert_eq!(longest, (84..100).rev().collect::<Vec<_>>());
    }
}
