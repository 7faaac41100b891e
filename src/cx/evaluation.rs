//! The evaluation of a chunk of elements: its times, its thread or worker, and its waits.
//!
//! Each wait for a store or for the interpreter's lock is counted on the thread that waits. Such a wait is rare, or costs about
//! as much as reading the clock. A [`Watch`] over the evaluation of a chunk takes the difference of the counts.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::group::ElementGroup;

/// Waits of a thread outside its functions, and the data that it received from stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadWaits {
    /// Nanoseconds of waits for blocks of stores.
    pub(crate) store_ns: u64,
    /// Number of awaited blocks, number of repeated requests for them, and their bytes.
    pub(crate) requests: u64,
    pub(crate) retries: u64,
    pub(crate) store_bytes: u64,
    /// Nanoseconds of waits for the interpreter's lock.
    pub(crate) lock_ns: u64,
    /// Nanoseconds in which the thread could have run but had no core. Counted for chunks that took 2 ms or more.
    #[serde(default)]
    pub(crate) queued_ns: u64,
}

thread_local! {
    static OFF: Cell<ThreadWaits> = const {
        Cell::new(ThreadWaits { store_ns: 0, requests: 0, retries: 0, store_bytes: 0, lock_ns: 0, queued_ns: 0 })
    };
    /// Time that this thread had waited for a core, and the time of the reading.
    static QUEUED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// Counts a wait for a block of a store.
pub(crate) fn waited_for_store(time: Duration, retries: u64, bytes: u64) {
    let off = OFF.get();
    OFF.set(ThreadWaits {
        store_ns: off.store_ns + time.as_nanos() as u64,
        requests: off.requests + 1,
        retries: off.retries + retries,
        store_bytes: off.store_bytes + bytes,
        ..off
    });
}

/// Counts a wait for the interpreter's lock.
pub(crate) fn waited_for_lock(time: Duration) {
    let off = OFF.get();
    OFF.set(ThreadWaits { lock_ns: off.lock_ns + time.as_nanos() as u64, ..off });
}

/// Sets the number of this evaluating thread in its pool.
pub(crate) fn number_thread(number: usize) {
    NUMBER.set(u32::try_from(number).unwrap_or(u32::MAX));
}

impl ThreadWaits {
    /// Returns the counts of this thread so far.
    pub(crate) fn here() -> Self {
        OFF.get()
    }

    /// Returns the counts since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            store_ns: self.store_ns - before.store_ns,
            requests: self.requests - before.requests,
            retries: self.retries - before.retries,
            store_bytes: self.store_bytes - before.store_bytes,
            lock_ns: self.lock_ns - before.lock_ns,
            queued_ns: self.queued_ns - before.queued_ns,
        }
    }

    /// Returns the waits for stores and for the lock within a piece of work. Their sum is at most `took`.
    pub(crate) fn within(self, took: Duration) -> (Duration, Duration) {
        let store = Duration::from_nanos(self.store_ns).min(took);
        (store, Duration::from_nanos(self.lock_ns).min(took - store))
    }
}

/// Evaluator of elements: a thread of this process, or a worker process, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EvaluatorId {
    pub(crate) number: u32,
    /// Index of the worker's machine in the recorder's list. `None` for this machine.
    pub(crate) host: Option<u16>,
}

/// The evaluation of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluation {
    /// Times at which the evaluation began and at which the chunk was ready.
    pub(crate) begun: Instant,
    pub(crate) done: Instant,
    pub(crate) who: EvaluatorId,
    /// Bytes of the chunk in transfer memory. 0 if nothing is copied.
    pub(crate) bytes: u64,
    /// The slowest group of the chunk.
    pub(crate) slowest: Option<ElementGroup>,
    pub(crate) off: ThreadWaits,
    /// Times at which an earlier worker received the chunk and died. `None` if no worker died.
    pub(crate) lost: Option<(Instant, Instant)>,
}

impl Evaluation {
    /// Returns the evaluation of a chunk that took `took` and is ready now.
    pub(crate) fn now(took: Duration) -> Self {
        let done = Instant::now();
        let begun = done.checked_sub(took).unwrap_or(done);
        let (who, off) = (EvaluatorId::default(), ThreadWaits::default());
        Self { begun, done, who, bytes: 0, slowest: None, off, lost: None }
    }

    /// Returns the time from `begun` to `done`.
    pub(crate) fn took(&self) -> Duration {
        self.done.saturating_duration_since(self.begun)
    }

    /// Returns the part of a time in the chunk that its elements account for. Excludes waits for a core and for the interpreter's
    /// lock, because other threads cause these.
    pub(crate) fn own(&self, took: Duration) -> Duration {
        took.saturating_sub(Duration::from_nanos(self.off.queued_ns.saturating_add(self.off.lock_ns)))
    }
}

/// Minimum duration of a chunk for which waits for a core are read, and minimum interval of these readings. A reading takes a
/// few microseconds.
const LONG: Duration = Duration::from_millis(2);

/// Measurement of the evaluation of a chunk on this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    begun: Instant,
    off: ThreadWaits,
    queued: Duration,
}

impl Watch {
    /// Starts the measurement.
    pub(crate) fn start() -> Self {
        let begun = Instant::now();
        let queued = match QUEUED.get() {
            Some((at, queued)) if begun - at < LONG => queued,
            _ => queued_at(begun),
        };
        Self { begun, off: ThreadWaits::here(), queued }
    }

    /// Returns the evaluation of the chunk since the start. Must run on the thread that called [`start`](Self::start).
    pub(crate) fn end(self, slowest: Option<ElementGroup>) -> Evaluation {
        let who = EvaluatorId { number: NUMBER.get(), host: None };
        let (begun, done) = (self.begun, Instant::now());
        let took = done - begun;
        let queued = if took < LONG { Duration::ZERO } else { queued_at(done).saturating_sub(self.queued).min(took) };
        let off = ThreadWaits { queued_ns: queued.as_nanos() as u64, ..ThreadWaits::here().since(self.off) };
        Evaluation { begun, done, who, bytes: 0, slowest, off, lost: None }
    }
}

/// Returns the time in which this thread could have run but had no core, since its start. Returns 0 if the system does not count it.
fn queued_at(now: Instant) -> Duration {
    // Linux: nanoseconds on a core, nanoseconds in the run queue, number of time slices.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let queued = text.split_ascii_whitespace().nth(1).and_then(|ns| ns.parse().ok()).map(Duration::from_nanos);
    let queued = queued.unwrap_or_default();
    QUEUED.set(Some((now, queued)));
    queued
}
