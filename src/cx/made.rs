//! The making of a chunk of elements: when, by whom, and what was waited for meanwhile.
//!
//! Whoever waits for a store or for the interpreter's lock counts that on its own thread, each time: it is rare, or costs
//! as much as a look at the clock. A [`Watch`] over the evaluation of a chunk takes the difference.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::piece::Piece;

/// Time that a thread waited for what its functions have no part in, and what it got of stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Off {
    /// Nanoseconds until blocks of stores were there.
    pub(crate) store_ns: u64,
    /// Blocks that were waited for, requests for them that were repeated, and their bytes.
    pub(crate) requests: u64,
    pub(crate) retries: u64,
    pub(crate) store_bytes: u64,
    /// Nanoseconds until the interpreter's lock was had.
    pub(crate) lock_ns: u64,
    /// Nanoseconds in which the thread could have run, and others had the cores. Of chunks that took 2 ms or more.
    #[serde(default)]
    pub(crate) queued_ns: u64,
}

thread_local! {
    static OFF: Cell<Off> = const { Cell::new(Off { store_ns: 0, requests: 0, retries: 0, store_bytes: 0, lock_ns: 0, queued_ns: 0 }) };
    /// Time that this thread had waited for a core, and when that was read.
    static QUEUED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// Counts a wait for a block of a store.
#[cfg(feature = "store")]
pub(crate) fn waited_for_store(time: Duration, retries: u64, bytes: u64) {
    let off = OFF.get();
    OFF.set(Off {
        store_ns: off.store_ns + time.as_nanos() as u64,
        requests: off.requests + 1,
        retries: off.retries + retries,
        store_bytes: off.store_bytes + bytes,
        ..off
    });
}

/// Counts a wait for the interpreter's lock.
#[cfg(feature = "python")]
pub(crate) fn waited_for_lock(time: Duration) {
    let off = OFF.get();
    OFF.set(Off { lock_ns: off.lock_ns + time.as_nanos() as u64, ..off });
}

/// Gives this thread, which evaluates, its number among those of its pool.
pub(crate) fn number_thread(number: usize) {
    NUMBER.set(u32::try_from(number).unwrap_or(u32::MAX));
}

impl Off {
    /// Counts of this thread so far.
    pub(crate) fn here() -> Self {
        OFF.get()
    }

    /// Counts since `before`.
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

    /// Time that was waited for stores, and for the lock, of a piece of work that took `took`: no more than that together.
    pub(crate) fn within(self, took: Duration) -> (Duration, Duration) {
        let store = Duration::from_nanos(self.store_ns).min(took);
        (store, Duration::from_nanos(self.lock_ns).min(took - store))
    }
}

/// One who evaluates elements: a thread of this process by its number, or a worker process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) number: u32,
    /// The machine of a worker, if that is another, by its place among those that the recorder knows.
    pub(crate) host: Option<u16>,
}

/// The making of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    /// Time at which its evaluation began, and at which it was there.
    pub(crate) begun: Instant,
    pub(crate) done: Instant,
    pub(crate) who: Who,
    /// Bytes that it takes up where it is handed over; 0 where nothing is copied.
    pub(crate) bytes: u64,
    /// The piece of it that took longest.
    pub(crate) slowest: Option<Piece>,
    pub(crate) off: Off,
    /// Times at which a worker had been given it before, and had died over it or beside it, if one had.
    pub(crate) lost: Option<(Instant, Instant)>,
}

impl Made {
    /// One that is there now and took so long.
    #[cfg(any(test, all(feature = "workers", target_os = "linux")))]
    pub(crate) fn now(took: Duration) -> Self {
        let done = Instant::now();
        let begun = done.checked_sub(took).unwrap_or(done);
        let (who, off) = (Who::default(), Off::default());
        Self { begun, done, who, bytes: 0, slowest: None, off, lost: None }
    }

    /// Time that it took.
    pub(crate) fn took(&self) -> Duration {
        self.done.saturating_duration_since(self.begun)
    }

    /// The part of a time in it that its elements have taken: without the time in which its thread waited for a core, or for the interpreter's
    /// lock. Those who had these are to blame for that.
    pub(crate) fn own(&self, took: Duration) -> Duration {
        took.saturating_sub(Duration::from_nanos(self.off.queued_ns.saturating_add(self.off.lock_ns)))
    }
}

/// Chunks that take less do not wait long for a core, and the time that a thread has waited is read this often at most: it takes some
/// microseconds.
const LONG: Duration = Duration::from_millis(2);

/// A watch over the evaluation of a chunk on this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    begun: Instant,
    off: Off,
    queued: Duration,
}

impl Watch {
    /// Starts it.
    pub(crate) fn start() -> Self {
        let begun = Instant::now();
        let queued = match QUEUED.get() {
            Some((at, queued)) if begun - at < LONG => queued,
            _ => queued_at(begun),
        };
        Self { begun, off: Off::here(), queued }
    }

    /// The chunk that was evaluated since, on the same thread.
    pub(crate) fn made(self, slowest: Option<Piece>) -> Made {
        let who = Who { number: NUMBER.get(), host: None };
        let (begun, done) = (self.begun, Instant::now());
        let took = done - begun;
        let queued = if took < LONG { Duration::ZERO } else { queued_at(done).saturating_sub(self.queued).min(took) };
        let off = Off { queued_ns: queued.as_nanos() as u64, ..Off::here().since(self.off) };
        Made { begun, done, who, bytes: 0, slowest, off, lost: None }
    }
}

/// Reads the time in which this thread could have run and had no core, since it started; 0 if the system does not count it.
fn queued_at(now: Instant) -> Duration {
    // Linux: nanoseconds on a core, those in the queue, and how often it was put there.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let queued = text.split_ascii_whitespace().nth(1).and_then(|ns| ns.parse().ok()).map(Duration::from_nanos);
    let queued = queued.unwrap_or_default();
    QUEUED.set(Some((now, queued)));
    queued
}
