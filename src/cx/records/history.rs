//! Records that are handed on while a run goes on, and put together again.

use serde::{Deserialize, Serialize};

use super::ring::Ring;
use super::stretches::Stretches;
use super::{BATCHES, Batch, CHUNKS, Chunk, Snapshot, Stretch};

/// Counts of the records that somebody has seen already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// The recorder that they are of, by its address: one that takes the place of another is made while that is there.
    of: Option<usize>,
    pub(super) batches: u64,
    pub(super) chunks: u64,
    pub(super) stretches: u64,
}

impl Seen {
    /// Begins anew where records are those of another recorder than before, and says so.
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

/// Records that have come since somebody looked last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct News {
    /// Whether these are of another pass that has taken the place of the one before: times begin anew.
    #[serde(default, skip_serializing_if = "is_not")]
    pub(crate) anew: bool,
    pub(crate) batches: Vec<Batch>,
    /// Batches before these that nobody has seen: there were more than are kept.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) missed_batches: u64,
    pub(crate) chunks: Vec<Chunk>,
    /// The same of chunks.
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

/// Records put together again, as many as are kept of a run.
#[derive(Debug, Default)]
pub(crate) struct History {
    batches: Ring<Batch, BATCHES>,
    chunks: Ring<Chunk, CHUNKS>,
    stretches: Stretches,
}

impl History {
    /// Adds what has come.
    pub(crate) fn add(&mut self, news: News) {
        if news.anew {
            *self = Self::default();
        }
        // What is drawn of single batches has no holes; stretches have all of it.
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

    /// The records of a run that these were all of.
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
                // Through JSON, as it is recorded.
                let text = serde_json::to_string(&records.news(&mut seen, None)).unwrap();
                history.add(serde_json::from_str(&text).unwrap());
            }
        }
        history.add(records.news(&mut seen, Some(&[2000])));
        let (kept, told) = (records.snapshot(&[2000]), history.snapshot());
        assert_eq!((&told.batches, &told.chunks), (&kept.batches, &kept.chunks));
        // The present one ends when it is looked at.
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
