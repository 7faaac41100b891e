//! Records of a run, always on: every batch, every chunk that its reader took, the whole run in stretches of time.
//!
//! Both are rare, some thousand a second at most: small elements travel in packets, which have one record for all. Rings keep the last of
//! them, stretches get longer with age, so a run of any length is seen in a few megabytes.

mod fill;
mod history;
mod memory;
mod ns;
mod ring;
mod stretches;

use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) use self::fill::{Fill, LEVELS};
pub(crate) use self::history::{History, News, Seen};
pub(crate) use self::memory::WorkerMemory;
use self::ring::Ring;
pub(crate) use self::stretches::Stretch;
use self::stretches::Stretches;
use serde::{Deserialize, Serialize};

use super::given::Given;
use super::made::{Made, Off, Who};
use super::piece::Piece;
use super::waits::{Awaited, Shares};
use crate::sync::Locked;

/// Batches that are kept, and chunks.
const BATCHES: usize = 4096;
const CHUNKS: usize = 16384;

/// Elements that the consumer was given at once: a batch, or a packet of small elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The number of the first in this run; and how many they are, none at the end of the stream.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Places of the buffer that were filled when it was asked for, where there is a buffer.
    pub(crate) ready: Option<u32>,
    /// Time at which it was asked for, and given, after the start of the run.
    #[serde(with = "ns")]
    pub(crate) asked: Duration,
    #[serde(with = "ns")]
    pub(crate) given: Duration,
    /// Time at which it was begun, and was there, where it was made ahead of the consumer.
    #[serde(default, with = "ns::two")]
    pub(crate) made: Option<(Duration, Duration)>,
    /// The wait in between by cause.
    #[serde(with = "ns::by_cause")]
    pub(crate) shares: Shares,
    /// Waits around the loader between the batch before and this one: for the interpreter's lock, and for devices.
    #[serde(default, with = "ns::by_cause", skip_serializing_if = "Shares::is_none")]
    pub(crate) beside: Shares,
}

/// Consecutive root elements that one evaluated, and the reader of the stream took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    /// The border that it stands in front of, by id.
    pub(crate) border: u32,
    /// The first index, and how many there are.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Time at which its evaluation began and ended, and at which it was taken.
    #[serde(with = "ns")]
    pub(crate) begun: Duration,
    #[serde(with = "ns")]
    pub(crate) done: Duration,
    #[serde(with = "ns")]
    pub(crate) taken: Duration,
    /// Time for which the reader had waited for it then.
    #[serde(with = "ns")]
    pub(crate) waited: Duration,
    /// Who evaluated it.
    pub(crate) who: Who,
    /// Bytes that it took up where it was handed over; 0 where nothing was copied.
    pub(crate) bytes: u64,
    /// The piece of it that took longest.
    pub(crate) slowest: Option<Piece>,
    pub(crate) off: Off,
}

/// A chunk as its reader takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The first index, and how many there are.
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) made: Made,
    /// The wait for it, if it was not there.
    pub(crate) wait: Option<(Instant, Instant)>,
    /// Whether others had nothing left to do, and whether it kept back what comes behind it: see [`Awaited`].
    pub(crate) idle: bool,
    pub(crate) holds_up: bool,
}

impl Taken {
    /// The wait for it, in front of the border of this id, as causes are found of it.
    pub(super) fn awaited(&self, wait: (Instant, Instant), border: usize) -> Awaited {
        Awaited { wait, made: self.made, idle: self.idle, holds_up: self.holds_up, border }
    }
}

/// Everything that is kept of a run.
#[derive(Debug)]
pub(crate) struct Records {
    start: Instant,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    batches: Ring<Batch, BATCHES>,
    chunks: Ring<Chunk, CHUNKS>,
    stretches: Stretches,
}

/// Copy of what is kept of a run at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// The last batches and chunks, in the order in which they were taken.
    pub(crate) batches: Vec<Batch>,
    pub(crate) chunks: Vec<Chunk>,
    /// The whole run; the present stretch, which is not over, is the last.
    pub(crate) stretches: Vec<Stretch>,
}

impl Records {
    /// Records of a run that began at `start`.
    pub(super) fn new(start: Instant) -> Self {
        let book = Book { batches: Ring::default(), chunks: Ring::default(), stretches: Stretches::default() };
        Self { start, book: Mutex::new(book) }
    }

    /// Keeps a batch that was waited for because of `shares`, and before which the loop around waited `beside` the loader. Where a stretch is over, it is asked for the `work` of the stages so far.
    pub(super) fn batch(&self, given: &Given, shares: Shares, beside: Shares, work: impl FnOnce() -> Vec<u64>) {
        let batch = Batch {
            first: given.first,
            count: narrow(given.count as u64),
            ready: given.ready.map(|ready| narrow(ready as u64)),
            asked: self.after(given.asked),
            given: self.after(given.given),
            made: given.made.map(|(begun, done)| (self.after(begun), self.after(done))),
            shares,
            beside,
        };
        let mut book = self.book.locked();
        book.batches.push(batch);
        if book.stretches.add(&batch) {
            // No one who has the lock of the tallies waits for that of the book.
            book.stretches.close(batch.given, work());
        }
    }

    /// Notes how much memory workers use now.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(super) fn workers_use(&self, memory: WorkerMemory) {
        self.book.locked().stretches.workers_use(memory);
    }

    /// Keeps a chunk that was taken in front of the border of this id.
    pub(super) fn chunk(&self, taken: &Taken, border: usize) {
        let Made { begun, done, who, bytes, slowest, off, .. } = taken.made;
        let (from, to) = taken.wait.unwrap_or_else(|| {
            let now = Instant::now();
            (now, now)
        });
        let chunk = Chunk {
            border: narrow(border as u64),
            first: taken.first,
            count: narrow(taken.count),
            begun: self.after(begun),
            done: self.after(done),
            taken: self.after(to),
            waited: to - from,
            who,
            bytes,
            slowest,
            off,
        };
        self.book.locked().chunks.push(chunk);
    }

    /// Copies what is kept, in a run whose stages have done so much `work`.
    pub(super) fn snapshot(&self, work: &[u64]) -> Snapshot {
        let book = self.book.locked();
        let stretches = book.stretches.with_present(self.after(Instant::now()), work);
        Snapshot {
            batches: book.batches.iter().copied().collect(),
            chunks: book.chunks.iter().copied().collect(),
            stretches,
        }
    }

    /// What has come since `seen`, which is moved behind it; at the `end`, with the present stretch, in a run whose stages have done so much work.
    pub(super) fn news(&self, seen: &mut Seen, end: Option<&[u64]>) -> News {
        let book = self.book.locked();
        let (batches, missed_batches) = book.batches.since(&mut seen.batches);
        let (chunks, missed_chunks) = book.chunks.since(&mut seen.chunks);
        let mut stretches = book.stretches.since(&mut seen.stretches);
        stretches.extend(end.and_then(|work| book.stretches.present(self.after(Instant::now()), work)));
        News {
            anew: false,
            batches: batches.copied().collect(),
            missed_batches,
            chunks: chunks.copied().collect(),
            missed_chunks,
            stretches,
        }
    }

    fn after(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.start)
    }
}

/// A number in fewer bytes: what does not fit is as large as can be.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cause;

    /// Bytes that records of a run of any length take up at most: full rings, every level of stretches full, of a pipeline of 50 stages.
    const MOST_BYTES: usize = 16 << 20;

    #[test]
    fn records_of_a_run_of_any_length_are_bounded() {
        let rings = BATCHES * size_of::<Batch>() + CHUNKS * size_of::<Chunk>();
        assert!(rings + stretches::most_bytes(50) < MOST_BYTES, "{rings} + {}", stretches::most_bytes(50));
    }

    #[test]
    fn the_last_batches_are_kept_in_order() {
        let start = Instant::now();
        let records = Records::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        for number in 0..BATCHES as u64 + 100 {
            let (asked, given) = (at(number), at(number + 1));
            let given = Given { first: number, count: 1, ready: Some(2), asked, given, made: Some((asked, given)) };
            records.batch(&given, Shares::of(Cause::Reader, Duration::from_millis(1)), Shares::default(), Vec::new);
        }
        let snapshot = records.snapshot(&[]);
        assert_eq!(snapshot.batches.len(), BATCHES);
        assert!(snapshot.batches.iter().map(|batch| batch.first).eq(100..BATCHES as u64 + 100));
        let waited: Duration = snapshot.stretches.iter().map(|stretch| stretch.shares.total()).sum();
        assert_eq!(waited, Duration::from_millis(BATCHES as u64 + 100), "stretches have those that are gone, too");
        assert_eq!(snapshot.stretches.iter().map(|stretch| stretch.elements).sum::<u64>(), BATCHES as u64 + 100);
    }
}
