//! Records that are sent on during a run and reassembled by the receiver.

use serde::{Deserialize, Serialize};

use super::ring::Ring;
use super::stretches::Stretches;
use super::{BATCHES, Batch, CHUNKS, Chunk, Snapshot, Stretch};

/// Numbers of records that a receiver has already seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Address of the recorder that the records come from. Addresses differ, because a new recorder is made while the previous
    /// recorder still exists.
    of: Option<usize>,
    pub(super) batches: u64,
    pub(super) chunks: u64,
    pub(super) stretches: u64,
}

impl Seen {
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
pub(crate) struct News {
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
    pub(crate) stretches: Vec<Stretch>,
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
    stretches: Stretches,
}

impl History {
    /// Adds new records.
    pub(crate) fn add(&mut self, news: News) {
        if news.anew {
            *self = Self::default();
        }
        // The view of single batches must have no holes. Stretches cover everything.
        if news.missed_batches > 0 {
            self.batches.clear();
        }
        if news.missed_chunks > 0 {
            self.chunks.clear();
        }
        news.batches.into_iter().for_each(|batch| self.batches.push(batch));
        news.chunks.into_iter().for_each(|chunk| self.chunks.push(chunk));
        news.stretches.into_iter().for_each(|stretch| self.stretches.push(stretch));
    }

    /// Returns the records as a snapshot of a run.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            batches: self.batches.iter().copied().collect(),
            chunks: self.chunks.iter().copied().collect(),
            stretches: self.stretches.all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::cx::given::Given;
    use crate::cx::made::Made;
    use crate::cx::records::{Records, Taken};
    use crate::cx::waits::Shares;
    use crate::cx::{Cause, Piece};

    #[test]
    fn what_is_handed_on_bit_by_bit_is_what_is_kept() {
        let start = Instant::now();
        let records = Records::new(start);
        let at = |ms: u64| start + Duration::from_millis(ms);
        let (mut history, mut seen) = (History::default(), Seen::default());
        for number in 0..2000_u64 {
            let (asked, given) = (at(20 * number), at(20 * number + 7));
            let shares = Shares::of(Cause::ALL[number as usize % Cause::ALL.len()], given - asked);
            records.batch(
                &Given {
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
            let slowest = Some(Piece { index: number, count: 1, took: Duration::from_micros(3), stage: Some(1) });
            let wait = (number % 3 == 0).then_some((asked, given));
            let made = Made { begun: asked, done: given, slowest, ..Made::now(Duration::ZERO) };
            records.chunk(&Taken { first: number, count: 1, made, wait, holds_up: false, idle: false }, 1);
            if number % 37 == 0 {
                // JSON is the recorded form.
                let text = serde_json::to_string(&records.news(&mut seen, None)).unwrap();
                history.add(serde_json::from_str(&text).unwrap());
            }
        }
        history.add(records.news(&mut seen, Some(&[2000])));
        let (kept, told) = (records.snapshot(&[2000]), history.snapshot());
        assert_eq!((&told.batches, &told.chunks), (&kept.batches, &kept.chunks));
        // The present stretch ends at the time of the look.
        let (last, kept) = kept.stretches.split_last().unwrap();
        let (found, told) = told.stretches.split_last().unwrap();
        assert_eq!((told, found.from, found.shares), (kept, last.from, last.shares));
        assert!(records.news(&mut seen, None) == News::default(), "nothing is told twice");
    }

    #[test]
    fn batches_that_nobody_has_seen_are_counted_and_leave_no_hole() {
        let start = Instant::now();
        let records = Records::new(start);
        let (mut history, mut seen) = (History::default(), Seen::default());
        for number in 0..3 * BATCHES as u64 {
            let given = Given { first: number, count: 1, ready: None, asked: start, given: start, made: None };
            records.batch(&given, Shares::default(), Shares::default(), Vec::new);
            if number == 9 {
                history.add(records.news(&mut seen, None));
            }
        }
        let news = records.news(&mut seen, None);
        assert_eq!((news.batches.len(), news.missed_batches), (BATCHES, 2 * BATCHES as u64 - 10));
        history.add(news);
        let firsts: Vec<_> = history.snapshot().batches.iter().map(|batch| batch.first).collect();
        assert_eq!(firsts, (2 * BATCHES as u64..3 * BATCHES as u64).collect::<Vec<_>>());
    }
}
