//! Counters of store reads, for the report.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cx::Cx;

/// Counters of this process since the last report.
pub(in crate::store) static COUNTS: Counts = Counts::new();

#[derive(Debug)]
pub(in crate::store) struct Counts {
    /// Blocks that were read.
    pub(in crate::store) read: AtomicU64,
    /// Blocks that were read from the disk cache.
    pub(in crate::store) from_disk: AtomicU64,
    /// Blocks that were fetched from stores.
    pub(in crate::store) fetched: AtomicU64,
    pub(in crate::store) bytes: AtomicU64,
    pub(in crate::store) repeated: AtomicU64,
}

impl Counts {
    const fn new() -> Self {
        let [read, from_disk, fetched, bytes, repeated] = [const { AtomicU64::new(0) }; 5];
        Self { read, from_disk, fetched, bytes, repeated }
    }
}

pub(in crate::store) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}

/// Adds the counts since the last call to the report. Costs a single atomic load if no store is read.
#[inline]
pub(crate) fn tell(cx: &mut Cx) {
    if COUNTS.read.load(Relaxed) > 0 && cx.is_heard() {
        tell_all(cx);
    }
}

#[cold]
fn tell_all(cx: &mut Cx) {
    let Counts { read, from_disk, fetched, bytes, repeated } = &COUNTS;
    for (what, counter) in [
        ("store blocks read", read),
        ("store blocks from the cache on disk", from_disk),
        ("store blocks fetched", fetched),
        ("store bytes fetched", bytes),
        ("store requests repeated", repeated),
    ] {
        let happened = counter.swap(0, Relaxed);
        if happened > 0 {
            cx.note(what, happened);
        }
    }
}
