//! Records of a run, always on: every batch, every chunk that the reader took, and summaries of intervals of time.
//!
//! Batches and chunks are rare, a few thousand a second at most. Small elements travel in packets, and a packet has a
//! single record. Rings keep the last records and intervals get longer with age, so a run of any length fits in a few
//! megabytes.

mod fill;
mod history;
mod intervals;
mod memory;
mod ns;
mod ring;

use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) use self::fill::{Fill, LEVELS};
pub(crate) use self::history::{Cursor, History, Update};
pub(crate) use self::intervals::Interval;
use self::intervals::Intervals;
pub(crate) use self::memory::WorkerMemory;
use self::ring::Ring;
use serde::{Deserialize, Serialize};

use super::evaluation::{Evaluation, EvaluatorId, ThreadWaits};
use super::group::ElementGroup;
use super::response::Response;
use super::waits::{Awaited, Shares};
use crate::sync::Locked;

/// Numbers of batches and chunks that are kept.
const BATCHES: usize = 4096;
const CHUNKS: usize = 16384;

/// Elements that the consumer received at once: a batch, or a packet of small elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Number of the first element in this run, and the number of elements. The count is 0 at the end of the stream.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Filled places of the buffer at the time of the request. `None` if there is no buffer.
    pub(crate) ready: Option<u32>,
    /// Times of the request and of the delivery, after the start of the run.
    #[serde(with = "ns")]
    pub(crate) asked: Duration,
    #[serde(with = "ns")]
    pub(crate) given: Duration,
    /// Times at which the batch was begun and ready. `None` unless it was made ahead of the consumer.
    #[serde(default, with = "ns::two")]
    pub(crate) made: Option<(Duration, Duration)>,
    /// The wait between request and delivery, by cause.
    #[serde(with = "ns::by_cause")]
    pub(crate) shares: Shares,
    /// Waits outside the loader between the previous batch and this batch: for the interpreter's lock, and for devices.
    #[serde(default, with = "ns::by_cause", skip_serializing_if = "Shares::is_none")]
    pub(crate) beside: Shares,
}

/// Consecutive root elements that one thread or worker evaluated and the reader of the stream took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Chunk {
    /// Id of the border after the stages that evaluate the elements.
    pub(crate) border: u32,
    /// The first index, and the number of elements.
    pub(crate) first: u64,
    pub(crate) count: u32,
    /// Times at which the evaluation began and ended, and at which the reader took the chunk.
    #[serde(with = "ns")]
    pub(crate) begun: Duration,
    #[serde(with = "ns")]
    pub(crate) done: Duration,
    #[serde(with = "ns")]
    pub(crate) taken: Duration,
    /// Time that the reader had waited for the chunk.
    #[serde(with = "ns")]
    pub(crate) waited: Duration,
    /// The thread or worker that evaluated the chunk.
    pub(crate) who: EvaluatorId,
    /// Bytes of the chunk in transfer memory. 0 if nothing was copied.
    pub(crate) bytes: u64,
    /// The slowest group of the chunk.
    pub(crate) slowest: Option<ElementGroup>,
    pub(crate) off: ThreadWaits,
}

/// A chunk at the time the reader takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// The first index, and the number of elements.
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) made: Evaluation,
    /// The wait for the chunk, if it was not ready.
    pub(crate) wait: Option<(Instant, Instant)>,
    /// `idle`: other workers had no work left. `holds_up`: the chunk held up later chunks. See [`Awaited`].
    pub(crate) idle: bool,
    pub(crate) holds_up: bool,
}

impl Taken {
    /// Converts the wait for the chunk to the input of the cause analysis. `border` is the id of the border.
    pub(super) fn awaited(&self, wait: (Instant, Instant), border: usize) -> Awaited {
        Awaited { wait, made: self.made, idle: self.idle, holds_up: self.holds_up, border }
    }
}

/// All records of a run.
#[derive(Debug)]
pub(crate) struct Records {
    start: Instant,
    rings: Mutex<Rings>,
}

#[derive(Debug)]
struct Rings {
    batches: Ring<Batch, BATCHES>,
    chunks: Ring<Chunk, CHUNKS>,
    intervals: Intervals,
}

/// Copy of the records of a run at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// The last batches and chunks, in the order in which they were taken.
    pub(crate) batches: Vec<Batch>,
    pub(crate) chunks: Vec<Chunk>,
    /// Intervals of the whole run. The last is the present interval, which has not ended.
    pub(crate) intervals: Vec<Interval>,
}

impl Records {
    /// Returns empty records of a run that began at `start`.
    pub(super) fn new(start: Instant) -> Self {
        let rings = Rings { batches: Ring::default(), chunks: Ring::default(), intervals: Intervals::default() };
        Self { start, rings: Mutex::new(rings) }
    }

    /// Records a batch. `shares` are the causes of its wait, `beside` the earlier waits of the training loop outside the loader.
    /// Calls `work` for the work of the stages so far if an interval has ended.
    pub(super) fn batch(&self, response: &Response, shares: Shares, beside: Shares, work: impl FnOnce() -> Vec<u64>) {
        let batch = Batch {
            first: response.first,
            count: narrow(response.count as u64),
            ready: response.ready.map(|ready| narrow(ready as u64)),
            asked: self.after(response.asked),
            given: self.after(response.given),
            made: response.made.map(|(begun, done)| (self.after(begun), self.after(done))),
            shares,
            beside,
        };
        let mut rings = self.rings.locked();
        rings.batches.push(batch);
        if rings.intervals.add(&batch) {
            // No thread that holds the lock of the tallies waits for the lock of the rings.
            rings.intervals.close(batch.given, work());
        }
    }

    /// Records the present memory use of workers.
    pub(super) fn workers_use(&self, memory: WorkerMemory) {
        self.rings.locked().intervals.workers_use(memory);
    }

    /// Records a chunk that was taken at the border with id `border`.
    pub(super) fn chunk(&self, taken: &Taken, border: usize) {
        let Evaluation { begun, done, who, bytes, slowest, off, .. } = taken.made;
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
        self.rings.locked().chunks.push(chunk);
    }

    /// Copies the records. `work` is the work of the stages so far.
    pub(super) fn snapshot(&self, work: &[u64]) -> Snapshot {
        let rings = self.rings.locked();
        let intervals = rings.intervals.with_present(self.after(Instant::now()), work);
        Snapshot {
            batches: rings.batches.iter().copied().collect(),
            chunks: rings.chunks.iter().copied().collect(),
            intervals,
        }
    }

    /// Returns the records since `cursor` and advances `cursor`. At the `end` of a run, which holds the work of its stages, the present
    /// interval is included.
    pub(super) fn updates(&self, cursor: &mut Cursor, end: Option<&[u64]>) -> Update {
        let rings = self.rings.locked();
        let (batches, missed_batches) = rings.batches.since(&mut cursor.batches);
        let (chunks, missed_chunks) = rings.chunks.since(&mut cursor.chunks);
        let mut intervals = rings.intervals.since(&mut cursor.intervals);
        intervals.extend(end.and_then(|work| rings.intervals.present(self.after(Instant::now()), work)));
        Update {
            anew: false,
            batches: batches.copied().collect(),
            missed_batches,
            chunks: chunks.copied().collect(),
            missed_chunks,
            intervals,
        }
    }

    fn after(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.start)
    }
}

/// Converts a number to 32 bits. Larger numbers become `u32::MAX`.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cause;

    /// Maximum bytes of the records of a run of any length. Assumes full rings and full levels, and a pipeline of 50 stages.
    const MOST_BYTES: usize = 16 << 20;

    #[test]
    fn records_of_a_run_of_any_length_are_bounded() {
        let rings = BATCHES * size_of::<Batch>() + CHUNKS * size_of::<Chunk>();
        assert!(rings + intervals::most_bytes(50) < MOST_BYTES, "{rings} + {}", intervals::most_bytes(50));
    }

    #[test]
    fn the_last_batches_are_kept_in_order() {
        let start = Instant::now();
        let records = Records::new(start);
        let at = |ms| start + Duration::from_millis(ms);
        for number in 0..BATCHES as u64 + 100 {
            let (asked, given) = (at(number), at(number + 1));
            let response =
                Response { first: number, count: 1, ready: Some(2), asked, given, made: Some((asked, given)) };
            records.batch(&response, Shares::of(Cause::Reader, Duration::from_millis(1)), Shares::default(), Vec::new);
        }
        let snapshot = records.snapshot(&[]);
        assert_eq!(snapshot.batches.len(), BATCHES);
        assert!(snapshot.batches.iter().map(|batch| batch.first).eq(100..BATCHES as u64 + 100));
        let waited: Duration = snapshot.intervals.iter().map(|interval| interval.shares.total()).sum();
        assert_eq!(waited, Duration::from_millis(BATCHES as u64 + 100), "intervals have those that are gone, too");
        assert_eq!(snapshot.intervals.iter().map(|interval| interval.elements).sum::<u64>(), BATCHES as u64 + 100);
    }
}
