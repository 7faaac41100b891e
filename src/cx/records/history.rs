//! Records that are sent on during a run and reassembled by the receiver.

use serde::{Deserialize, Serialize};

use super::intervals::Intervals;
use super::ring::Ring;
use super::{BATCHES, Batch, CHUNKS, Chunk, Interval, Snapshot};

/// Numbers of records that a receiver has already cursor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Address of the recorder that the records come from. Addresses differ, because a new recorder is made while the previous
    /// recorder still exists.
    of: Option<usize>,
    pub(super) batches: u64,
    pub(super) chunks: u64,
    pub(super) intervals: u64,
}

impl Cursor {
    /// Starts anew if the records come from another recorder than before. Returns true in that case.
    pub(in crate::cx) fn turn_to<T>(&mut self, recorder: &T) -> bool {
        let here = std::ptr::from_ref(recorder).addr();
        let anew = self.of.is_some_and(|of| of != here);
        if anew {
            *self = Self::default();
        }
        self.of = Some(here);
        anew
    }
}

/// Records since the previous look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Update {
    /// True if the records are of a new pass that has replaced the previous pass. Times start anew.
    #[serde(default, skip_serializing_if = "is_not")]
    pub(crate) anew: bool,
    pub(crate) batches: Vec<Batch>,
    /// Number of earlier batches that were dropped unseen because more arrived than are kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) missed_batches: u64,
    pub(crate) chunks: Vec<Chunk>,
    /// Number of earlier chunks that were dropped unseen because more arrived than are kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) missed_chunks: u64,
    #[serde(rename = "stretches")]
    pub(crate) intervals: Vec<Interval>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_not(is: &bool) -> bool {
    !is
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Reassembled records, up to the number that is kept of a run.
#[derive(Debug, Default)]
pub(crate) struct History {
    batches: Ring<Batch, BATCHES>,
    chunks: Ring<Chunk, CHUNKS>,
    intervals: Intervals,
}

impl History {
    /// Adds new records.
    pub(crate) fn add(&mut self, update: Update) {
        if update.anew {
            *self = Self::default();
        }
        // The view of single batches must have no holes. Intervals cover everything.
        if update.missed_batches > 0 {
            self.batches.clear();
        }
        if update.missed_chunks > 0 {
            self.chunks.clear();
        }
        update.batches.into_iter().for_each(|batch| self.batches.push(batch));
        update.chunks.into_iter().for_each(|chunk| self.chunks.push(chunk));
        update.intervals.into_iter().for_each(|interval| self.intervals.push(interval));
    }

    /// Returns the records as a snapshot of a run.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            batches: self.batches.iter().copied().collect(),
            chunks: self.chunks.iter().copied().collect(),
            intervals: self.intervals.all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::cx::evaluation::Evaluation;
    use crate::cx::records::{Records, Taken};
    use crate::cx::response::Response;
    use crate::cx::waits::Shares;
    use crate::cx::{Cause, ElementGroup};

    #[test]
    fn what_is_handed_on_bit_by_bit_is_what_is_kept() {
        let start = Instant::now();
        let records = Records::new(start);
        let at = |ms: u64| start + Duration::from_millis(ms);
        let (mut history, mut cursor) = (History::default(), Cursor::default());
        for number in 0..2000_u64 {
            let (asked, given) = (at(20 * number), at(20 * number + 7));
            let shares = Shares::of(Cause::ALL[number as usize % Cause::ALL.len()], given - asked);
            records.batch(
                &Response {
                    first: number,
                    count: 1,
                    ready: Some(1),
                    asked,
                    given,
                    made: (number % 5 > 0).then_some((asked, given)),
                },
                shares,
                Shares::of(Cause::Transfer, Duration::from_nanos(number % 2)),
                || vec![number],
            );
            let slowest =
                Some(ElementGroup { index: number, count: 1, took: Duration::from_micros(3), stage: Some(1) });
            let wait = (number % 3 == 0).then_some((asked, given));
            let made = Evaluation { begun: asked, done: given, slowest, ..Evaluation::now(Duration::ZERO) };
            records.chunk(&Taken { first: number, count: 1, made, wait, holds_up: false, idle: false }, 1);
            if number % 37 == 0 {
                // JSON is the recorded form.
                let text = serde_json::to_string(&records.updates(&mut cursor, None)).unwrap();
                history.add(serde_json::from_str(&text).unwrap());
            }
        }
        history.add(records.updates(&mut cursor, Some(&[2000])));
        let (kept, told) = (records.snapshot(&[2000]), history.snapshot());
        assert_eq!((&told.batches, &told.chunks), (&kept.batches, &kept.chunks));
        // The present interval ends at the time of the look.
        let (last, kept) = kept.intervals.split_last().unwrap();
        let (found, told) = told.intervals.split_last().unwrap();
        assert_eq!((told, found.from, found.shares), (kept, last.from, last.shares));
        assert!(records.updates(&mut cursor, None) == Update::default(), "nothing is told twice");
    }

    #[test]
    fn batches_that_nobody_has_seen_are_counted_and_leave_no_hole() {
        let start = Instant::now();
        let records = Records::new(start);
        let (mut history, mut cursor) = (History::default(), Cursor::default());
        for number in 0..3 * BATCHES as u64 {
            let response = Response { first: number, count: 1, ready: None, asked: start, given: start, made: None };
            records.batch(&response, Shares::default(), Shares::default(), Vec::new);
            if number == 9 {
                history.add(records.updates(&mut cursor, None));
            }
        }
        let update = records.updates(&mut cursor, None);
        assert_eq!((update.batches.len(), update.missed_batches), (BATCHES, 2 * BATCHES as u64 - 10));
        history.add(update);
        let firsts: Vec<_> = history.snapshot().batches.iter().map(|batch| batch.first).collect();
        assert_eq!(firsts, (2 * BATCHES as u64..3 * BATCHES as u64).collect::<Vec<_>>());
    }
}
