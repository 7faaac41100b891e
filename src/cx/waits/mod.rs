//! Waits of the consumer, each split exactly among its causes.
//!
//! The thread that reads the stream records every wait for a chunk of root elements. The record includes the times at which the
//! chunk was begun and done. Chunks arrive in order. While the consumer waits, the reader either works or waits for a *single*
//! chunk and its thread or worker. A wait of the consumer is overlaid on these waits. Every part of the wait then has one
//! cause, and the parts add up to the wait.

mod account;
mod cause;
mod longest;
mod spans;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(crate) use self::account::Account;
pub use self::cause::{Cause, LongWait, StoreUse, WaitSuspect};
pub(crate) use self::cause::{Caused, Shares};
use self::longest::Longest;
#[cfg(any(test, feature = "python", all(feature = "workers", target_os = "linux")))]
pub(crate) use self::spans::Hold;
use self::spans::Spans;
use super::evaluation::Evaluation;
use super::response::Response;
use crate::sync::Locked;

/// Waits of the reader that are kept for the next wait of the consumer: more than the chunks of a batch.
const KEPT: usize = 4096;
/// Minimum length of a wait that is recorded individually.
const LONG: Duration = Duration::from_millis(1);

/// A chunk of root elements that the reader waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    /// Times at which the reader began to wait and received the chunk.
    pub(crate) wait: (Instant, Instant),
    pub(crate) made: Evaluation,
    /// True if most of the later requested chunks were ready, so that other workers were idle.
    pub(crate) idle: bool,
    /// True if the chunk took much longer than others at that time.
    pub(crate) holds_up: bool,
    /// Id of the border after the stages that evaluate the chunk.
    pub(crate) border: usize,
}

/// Log of the waits of a run.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) start: Instant,
    /// Start of the reader's present work in nanoseconds after the start, plus 1. 0 while the reader waits.
    at_work: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    /// Waits of the reader, in order.
    reader: VecDeque<Awaited>,
    /// Spans in which no chunk could be assigned, although a worker might have been free. The second field contains spans in
    /// which the consumer could not take ready elements.
    holds: Spans,
    consumer: Spans,
    account: Account,
    longest: Longest,
}

default_as!(Waits, Self { start: Instant::now(), at_work: AtomicU64::new(0), log: Mutex::default() });

impl Waits {
    /// Records a wait of the reader for a chunk.
    pub(crate) fn note(&self, awaited: Awaited) {
        let mut log = self.log.locked();
        if log.reader.len() == KEPT {
            log.reader.pop_front();
        }
        log.reader.push_back(awaited);
    }

    /// Records that the reader starts to work (`true`), or to wait for a chunk or for the consumer (`false`).
    pub(crate) fn reader_works(&self, does: bool) {
        let now = || self.start.elapsed().as_nanos() as u64 + 1;
        self.at_work.store(if does { now() } else { 0 }, Relaxed);
    }

    /// Starts a span from `now` on in which `hold` keeps chunks from being assigned. `None` ends the span.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn hold(&self, hold: Option<Hold>, now: Instant) {
        self.log.locked().holds.turn(hold, now);
    }

    /// Splits a wait of the consumer by cause. The first wait after a start or restore counts wholly as `begins`.
    pub(crate) fn explain(&self, response: &Response, begins: Option<Cause>) -> Shares {
        let (from, to) = (response.asked, response.given);
        let at_work = self.at_work.load(Relaxed).checked_sub(1).map(|ns| self.start + Duration::from_nanos(ns));
        let mut log = self.log.locked();
        let log = &mut *log;
        // Requests of the consumer are sequential, so waits that ended before this request are no longer needed.
        while log.reader.front().is_some_and(|awaited| awaited.wait.1 <= from) {
            log.reader.pop_front();
        }
        let caused = begins.map_or_else(|| log.split(response, at_work), |cause| Caused::whole(cause, to - from));
        let shares = caused.shares();
        log.account.add(&caused.account);
        log.holds.forget(from);
        log.consumer.forget(to);
        if to - from >= LONG && begins.is_none() {
            let wait = caused.into_long(response.first, from.saturating_duration_since(self.start), to - from);
            log.longest.keep(wait);
        }
        shares
    }

    /// Counts the wait of a consumer that made its element itself. `shares` are the parts that were not its own work.
    pub(crate) fn made(&self, shares: Shares, store: StoreUse) {
        let mut log = self.log.locked();
        log.account.shares.add(shares);
        log.account.store.add(store);
    }

    /// Returns the sums of all waits so far.
    pub(crate) fn account(&self) -> Account {
        self.log.locked().account.clone()
    }

    /// Returns up to `most` of the longest waits so far, the longest first.
    pub(crate) fn longest(&self, most: usize) -> Vec<LongWait> {
        self.log.locked().longest.first(most)
    }
}

#[cfg(feature = "python")]
impl Waits {
    /// Records a span in which the consumer could not take elements that may have been ready.
    pub(crate) fn kept(&self, cause: Cause, from: Instant, to: Instant) {
        self.log.locked().consumer.note(Hold::of_all(cause), from, to);
    }

    /// Records a wait of the consumer for a batch that was already delivered. The caller counts its share.
    pub(crate) fn late(&self, batch: u64, cause: Cause, from: Instant, to: Instant) {
        if to - from >= LONG {
            let at = from.saturating_duration_since(self.start);
            self.log.locked().longest.keep(Caused::whole(cause, to - from).into_long(batch, at, to - from));
        }
    }
}

impl Log {
    /// Overlays a wait of the consumer on the waits of the reader. `at_work` is the start of the reader's present work, if any.
    fn split(&self, response: &Response, at_work: Option<Instant>) -> Caused {
        let (mut caused, mut at) = (Caused::default(), response.asked);
        // After the element was ready, no thread worked on it.
        let there = response.made.map_or(response.given, |(_, there)| there.clamp(response.asked, response.given));
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
        let handed = self.consumer.between(there, response.given, |hold, time| caused.count(hold.cause, time));
        // If the reader works on later elements meanwhile, a faster consumer would wait for that work instead.
        let gone_on =
            at_work.map_or(Duration::ZERO, |since| response.given.saturating_duration_since(since.max(there)));
        let read = handed.min(gone_on);
        caused.count(Cause::Reader, read);
        caused.handed_over(handed - read);
        caused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::ThreadWaits;
    use crate::cx::group::ElementGroup;

    fn awaited(start: Instant, wait: (u64, u64), evaluated: (u64, u64), holds_up: bool) -> Awaited {
        let at = |(from, to)| (start + Duration::from_millis(from), start + Duration::from_millis(to));
        let slowest = Some(ElementGroup {
            index: 7,
            count: 1,
            took: Duration::from_millis(evaluated.1 - evaluated.0),
            stage: Some(2),
        });
        let (begun, done) = at(evaluated);
        let made = Evaluation { begun, done, slowest, ..Evaluation::now(Duration::ZERO) };
        Awaited { wait: at(wait), made, idle: true, holds_up, border: 3 }
    }

    fn explain(waits: &Waits, asked: Instant, given: Instant, is_first: bool) {
        let response = Response { first: 0, count: 1, ready: None, asked, given, made: None };
        let shares = waits.explain(&response, is_first.then_some(Cause::Start));
        assert_eq!(shares.total(), response.given - asked);
    }

    /// Returns the milliseconds of each cause, in the order of [`Cause`].
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
        // Reader 2 ms, queue 5, evaluation 13, hand-over 2; reader 10; evaluation 45, hand-over 5; reader 5.
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
        let off = |store_ms: u64, lock_ms: u64| ThreadWaits {
            store_ns: store_ms * 1_000_000,
            lock_ns: lock_ms * 1_000_000,
            requests: 3,
            retries: 1,
            store_bytes: 70,
            queued_ns: 0,
        };
        // A quarter of its 40 ms is a store wait, half is a lock wait. The awaited 20 ms have equal shares.
        let mut chunk = awaited(waits.start, (10, 30), (0, 40), true);
        chunk.made.off = off(10, 20);
        waits.note(chunk);
        // Several threads may wait for longer than the chunk took. The wait counts up to that time.
        let mut chunk = awaited(waits.start, (40, 60), (40, 60), false);
        chunk.made.off = off(15, 90);
        waits.note(chunk);
        // A worker received it at 65 and died at 70. Another worker evaluated it from 90 to 95.
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
        // Waits for memory until 14, evaluated until 34. Three of four workers lacked memory until 18, half of them until 28.
        waits.note(awaited(waits.start, (10, 34), (14, 34), false));
        explain(&waits, at(10), at(34), false);
        assert_eq!(shares(&waits), [(Cause::Memory, 4 + 3 + 5), (Cause::Evaluation, 12)]);
        // A chunk that takes much longer than others is its own cause.
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
        let response =
            Response { first: 0, count: 1, ready: None, asked: at(10), made: Some((at(0), at(35))), given: at(40) };
        waits.explain(&response, None);
        assert_eq!(shares(&waits), [(Cause::Reader, 5), (Cause::Evaluation, 25)]);
    }

    #[test]
    fn who_takes_late_what_the_reader_goes_on_with_waits_for_its_work() {
        let waits = Waits::default();
        let at = |ms| waits.start + Duration::from_millis(ms);
        let response =
            Response { first: 0, count: 1, ready: None, asked: at(10), made: Some((at(0), at(40))), given: at(90) };
        let split = |at_work| {
            let caused = waits.log.locked().split(&response, at_work);
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
        let response =
            Response { first: 0, count: 1, ready: None, asked: at(10), made: Some((at(0), at(40))), given: at(90) };
        waits.log.locked().consumer.note(Hold::of_all(Cause::Lock), at(30), at(70));
        waits.explain(&response, None);
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
