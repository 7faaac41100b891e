//! Waits of the consumer, each split exactly among what caused it.
//!
//! The thread that reads the stream notes every wait for a chunk of root elements: from when to when, and when that was begun and
//! done. Chunks come in order, so while the consumer waits, either the reader works, or it waits for *one* chunk, and that for whoever evaluates it.
//! A wait of the consumer is laid over those, and every part of it has one cause: the parts add up to the wait.

mod account;
mod cause;
mod longest;
mod spans;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(crate) use self::account::Account;
pub use self::cause::{Cause, LongWait, StoreUse};
pub(crate) use self::cause::{Caused, Shares};
use self::longest::Longest;
#[cfg(any(test, feature = "python", all(feature = "workers", target_os = "linux")))]
pub(crate) use self::spans::Hold;
use self::spans::Spans;
use super::given::Given;
use super::made::Made;
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
    pub(crate) made: Made,
    /// Whether most of what was asked for behind it had come: others had nothing left that they might do.
    pub(crate) idle: bool,
    /// Whether it took much longer than others then.
    pub(crate) holds_up: bool,
    /// The border that it stands in front of, by id.
    pub(crate) border: usize,
}

/// Log of a run's waits.
#[derive(Debug)]
pub(crate) struct Waits {
    start: Instant,
    /// Nanoseconds after the start from which the reader is at work without a break, and 1 more; 0 while it waits.
    at_work: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Waits of the reader, in order.
    reader: VecDeque<Awaited>,
    /// Spans in which nothing could be handed out, although somebody might have been free; and in which the consumer was kept from
    /// taking what was there.
    holds: Spans,
    consumer: Spans,
    account: Account,
    longest: Longest,
}

impl Default for Waits {
    fn default() -> Self {
        Self { start: Instant::now(), at_work: AtomicU64::new(0), log: Mutex::default() }
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

    /// The reader is at work from now on, or waits: for a chunk, or until the consumer has taken something.
    pub(crate) fn reader_works(&self, does: bool) {
        let now = || self.start.elapsed().as_nanos() as u64 + 1;
        self.at_work.store(if does { now() } else { 0 }, Relaxed);
    }

    /// Time from which waits are counted.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// From `now` on nothing can be handed out because of that, or there is nothing in the way.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn hold(&self, hold: Option<Hold>, now: Instant) {
        self.log.locked().holds.turn(hold, now);
    }

    /// Notes that the consumer was kept from taking what may have been there.
    #[cfg(feature = "python")]
    pub(crate) fn kept(&self, cause: Cause, from: Instant, to: Instant) {
        self.log.locked().consumer.note(Hold::of_all(cause), from, to);
    }

    /// Keeps a wait of the consumer for something that it had been given by then; its share is counted by who notes it.
    #[cfg(feature = "python")]
    pub(crate) fn late(&self, batch: u64, cause: Cause, from: Instant, to: Instant) {
        if to - from >= LONG {
            let at = from.saturating_duration_since(self.start);
            self.log.locked().longest.keep(Caused::whole(cause, to - from).into_long(batch, at, to - from));
        }
    }

    /// Splits the wait of the consumer for what it was given; the first behind a beginning is that, and nothing else.
    pub(crate) fn explain(&self, given: &Given, begins: Option<Cause>) -> Shares {
        let (from, to) = (given.asked, given.given);
        let at_work = self.at_work.load(Relaxed).checked_sub(1).map(|ns| self.start + Duration::from_nanos(ns));
        let mut log = self.log.locked();
        let log = &mut *log;
        // The consumer asks for one after the other: what was over before is asked about no more.
        while log.reader.front().is_some_and(|awaited| awaited.wait.1 <= from) {
            log.reader.pop_front();
        }
        let caused = begins.map_or_else(|| log.split(given, at_work), |cause| Caused::whole(cause, to - from));
        let shares = caused.shares();
        log.account.add(&caused.account);
        log.holds.forget(from);
        log.consumer.forget(to);
        if to - from >= LONG && begins.is_none() {
            let wait = caused.into_long(given.first, from.saturating_duration_since(self.start), to - from);
            log.longest.keep(wait);
        }
        shares
    }

    /// Counts the wait of a consumer that has made its element itself, `shares` of which were not its own work.
    pub(crate) fn made(&self, shares: Shares, store: StoreUse) {
        let mut log = self.log.locked();
        log.account.shares.add(shares);
        log.account.store.add(store);
    }

    /// Sums of all waits so far.
    pub(crate) fn account(&self) -> Account {
        self.log.locked().account.clone()
    }

    /// The longest waits so far, the longest first; so many at most.
    pub(crate) fn longest(&self, most: usize) -> Vec<LongWait> {
        self.log.locked().longest.first(most)
    }
}

impl Log {
    /// Lays a wait over those of the reader, which is `at_work` since then, if it is.
    fn split(&self, given: &Given, at_work: Option<Instant>) -> Caused {
        let (mut caused, mut at) = (Caused::default(), given.asked);
        // Once it was there, nobody worked for it any more.
        let there = given.made.map_or(given.given, |(_, there)| there.clamp(given.asked, given.given));
        for awaited in &self.reader {
            let (begin, end) = (awaited.wait.0.max(at), awaited.wait.1.min(there));
            if begin >= end {
                continue;
            }
            caused.count(Cause::Reader, begin - at);
            caused.chunk(awaited, begin, end, &self.holds);
            at = end;
        }
        caused.count(Cause::Reader, there.saturating_duration_since(at));
        let handed = self.consumer.between(there, given.given, |hold, time| caused.count(hold.cause, time));
        // Where the reader goes on meanwhile, who takes it at once waits for that instead.
        let gone_on = at_work.map_or(Duration::ZERO, |since| given.given.saturating_duration_since(since.max(there)));
        let read = handed.min(gone_on);
        caused.count(Cause::Reader, read);
        caused.handed_over(handed - read);
        caused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Off;
    use crate::cx::piece::Piece;

    fn awaited(start: Instant, wait: (u64, u64), evaluated: (u64, u64), holds_up: bool) -> Awaited {
        let at = |(from, to)| (start + Duration::from_millis(from), start + Duration::from_millis(to));
        let slowest =
            Some(Piece { index: 7, count: 1, took: Duration::from_millis(evaluated.1 - evaluated.0), stage: Some(2) });
        let (begun, done) = at(evaluated);
        let made = Made { begun, done, slowest, ..Made::now(Duration::ZERO) };
        Awaited { wait: at(wait), made, idle: true, holds_up, border: 3 }
    }

    fn explain(waits: &Waits, asked: Instant, given: Instant, is_first: bool) {
        let given = Given { first: 0, count: 1, ready: None, asked, given, made: None };
        let shares = waits.explain(&given, is_first.then_some(Cause::Start));
        assert_eq!(shares.total(), given.given - asked);
    }

    /// Milliseconds of each cause, in the order of [`Cause`].
    fn shares(waits: &Waits) -> Vec<(Cause, u64)> {
        let shares = waits.account().shares;
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
    fn what_a_chunk_waited_for_is_no_evaluation() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        let off = |store_ms: u64, lock_ms: u64| Off {
            store_ns: store_ms * 1_000_000,
            lock_ns: lock_ms * 1_000_000,
            requests: 3,
            retries: 1,
            store_bytes: 70,
            queued_ns: 0,
        };
        // A quarter of its 40 ms for a store, half of them for a lock: alike in the 20 ms that are waited for.
        let mut chunk = awaited(waits.start, (10, 30), (0, 40), true);
        chunk.made.off = off(10, 20);
        waits.note(chunk);
        // Waited for more than it took, as where several threads did: no more than it took counts.
        let mut chunk = awaited(waits.start, (40, 60), (40, 60), false);
        chunk.made.off = off(15, 90);
        waits.note(chunk);
        // A worker was given it at 65 and died at 70; another made it from 90 to 95.
        let mut chunk = awaited(waits.start, (60, 100), (90, 95), false);
        chunk.made.lost = Some((at(65), at(70)));
        waits.note(chunk);
        explain(&waits, at(10), at(110), false);
        assert_eq!(
            shares(&waits),
            [
                (Cause::Reader, 20),
                (Cause::Queue, 5),
                (Cause::Evaluation, 5),
                (Cause::HeadOfLine, 5),
                (Cause::Store, 20),
                (Cause::Death, 25),
                (Cause::Lock, 15),
                (Cause::HandOver, 5)
            ]
        );
        assert_eq!(waits.account().store, StoreUse { requests: 6, retries: 2, bytes: 140 });
    }

    #[test]
    fn hands_that_have_no_memory_have_their_part_in_what_the_others_take() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        let holds = [(Some(0.75), 10), (Some(0.5), 18), (None, 28)];
        for (idle, ms) in holds {
            let hold = idle.map(|idle| Hold { cause: Cause::Memory, idle });
            waits.log.locked().holds.turn(hold, at(ms));
        }
        // It waits for memory until 14, and is evaluated until 34: three of four had none until 18, and half of them until 28.
        waits.note(awaited(waits.start, (10, 34), (14, 34), false));
        explain(&waits, at(10), at(34), false);
        assert_eq!(shares(&waits), [(Cause::Memory, 4 + 3 + 5), (Cause::Evaluation, 12)]);
        // One that takes so long is its own fault.
        waits.log.locked().holds.turn(Some(Hold { cause: Cause::Memory, idle: 0.5 }), at(40));
        waits.note(awaited(waits.start, (40, 60), (40, 60), true));
        explain(&waits, at(40), at(60), false);
        assert_eq!(shares(&waits)[2], (Cause::HeadOfLine, 20));
    }

    #[test]
    fn who_takes_late_what_others_go_on_with_waits_for_their_work() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        waits.note(Awaited { idle: false, ..awaited(waits.start, (10, 30), (5, 20), false) });
        let given =
            Given { first: 0, count: 1, ready: None, asked: at(10), made: Some((at(0), at(35))), given: at(40) };
        waits.explain(&given, None);
        assert_eq!(shares(&waits), [(Cause::Reader, 5), (Cause::Evaluation, 25)]);
    }

    #[test]
    fn who_takes_late_what_the_reader_goes_on_with_waits_for_its_work() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        let given =
            Given { first: 0, count: 1, ready: None, asked: at(10), made: Some((at(0), at(40))), given: at(90) };
        let split = |at_work| {
            let caused = waits.log.locked().split(&given, at_work);
            caused.shares().iter().filter(|(_, time)| !time.is_zero()).collect::<Vec<_>>()
        };
        let ms = Duration::from_millis;
        assert_eq!(split(None), [(Cause::Reader, ms(30)), (Cause::HandOver, ms(50))]);
        assert_eq!(split(Some(at(41))), [(Cause::Reader, ms(79)), (Cause::HandOver, ms(1))]);
        assert_eq!(split(Some(at(5))), [(Cause::Reader, ms(80))]);
        assert_eq!(split(Some(at(95))), split(None));
    }

    #[test]
    fn nothing_is_waited_for_that_is_there() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        let given =
            Given { first: 0, count: 1, ready: None, asked: at(10), made: Some((at(0), at(40))), given: at(90) };
        waits.log.locked().consumer.note(Hold::of_all(Cause::Lock), at(30), at(70));
        waits.explain(&given, None);
        assert_eq!(shares(&waits), [(Cause::Reader, 30), (Cause::Lock, 30), (Cause::HandOver, 20)]);
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
