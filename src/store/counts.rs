//! Counts of stores, for the report.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cx::Cx;

/// Counts of this process since they were last told.
pub(super) static COUNTS: Counts = Counts::new();

#[derive(Debug)]
pub(super) struct Counts {
    /// Blocks that were read.
    pub(super) read: AtomicU64,
    /// Blocks that came out of the folder on disk.
    pub(super) from_disk: AtomicU64,
    /// Blocks that came from stores.
    pub(super) fetched: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) repeated: AtomicU64,
}

impl Counts {
    const fn new() -> Self {
        let [read, from_disk, fetched, bytes, repeated] = [const { AtomicU64::new(0) }; 5];
        Self { read, from_disk, fetched, bytes, repeated }
    }
}

pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}

/// Adds to the report what happened since the last time. Where nothing is read from stores, it is a look at one number.
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
