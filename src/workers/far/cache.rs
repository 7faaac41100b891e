//! Short-lived cache of a worker's answers, for other passes over an equal pipeline.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::cx::ThreadWaits;
use crate::element::Buffer;
use crate::error::Result;
use crate::exec::remote::{Border, Evaluated};
use crate::sync::{Locked, Regardless};
use crate::workers::control::Task;

/// Lifetime of an answer; passes at an equal pace request it again in less time.
const KEPT_FOR: Duration = Duration::from_secs(2);

/// The result of a task.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) evaluated: Evaluated,
    pub(super) took: Duration,
    pub(super) block: Buffer,
}

/// The beginning of a chunk; its end depends on the available room.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// Number of the pipeline in this worker.
    pipeline: u64,
    border: Border,
    start: u64,
    groups_from: Option<u64>,
    listed: Option<Vec<u64>>,
}

/// Recent answers up to a total size; the least recently used answer is dropped first.
pub(super) struct Cache {
    most_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    bytes: usize,
}

enum Entry {
    /// A thread is making the answer.
    UnderWay,
    Ready {
        made: Box<Made>,
        since: Instant,
        used: Instant,
    },
}

impl Cache {
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Returns the answer to `task` of a pipeline: the kept answer if it fits the task's range and room, otherwise the
    /// result of `make`. If another thread is making the answer, waits for it, but not longer than the lifetime of an
    /// answer.
    pub(super) fn find_or(&self, pipeline: u64, task: &Task, make: impl FnOnce() -> Result<Made>) -> Result<Made> {
        let Task { border, start, groups_from, ref listed, .. } = *task;
        let key = Key { pipeline, border, start, groups_from, listed: listed.clone() };
        if let Some(made) = self.find(&key, task) {
            return Ok(made);
        }
        // Dropped without an answer if `make` fails; waiting threads then make the answer themselves.
        let mut claim = Claim { cache: self, key, made: None };
        let made = make()?;
        if made.evaluated.indices > 0 && made.block.len() <= self.most_bytes {
            claim.made = Some(made.clone());
        }
        Ok(made)
    }

    /// Returns the kept answer. Returns `None` if the caller must make the answer, and makes other callers wait for it.
    fn find(&self, key: &Key, task: &Task) -> Option<Made> {
        let begun = Instant::now();
        let mut state = self.state.locked();
        loop {
            let now = Instant::now();
            state.sweep(now);
            match state.entries.get_mut(key) {
                Some(Entry::Ready { made, used, .. }) if fits(made, task) => {
                    *used = now;
                    let mut made = Made::clone(made);
                    // Waits inside the evaluation were counted for the first caller.
                    (made.evaluated.kept, made.evaluated.off) = (true, ThreadWaits::default());
                    return Some(made);
                }
                Some(Entry::UnderWay) if begun.elapsed() < KEPT_FOR => {
                    state = self.changed.wait_timeout(state, KEPT_FOR - begun.elapsed()).regardless().0;
                }
                // The answer is longer than requested, or its maker hangs.
                _ => {
                    state.put(key.clone(), Entry::UnderWay);
                    return None;
                }
            }
        }
    }

    /// Drops answers that are too old at `now`.
    pub(super) fn sweep(&self, now: Instant) {
        self.state.locked().sweep(now);
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.state.locked().bytes
    }
}

fn fits(made: &Made, task: &Task) -> bool {
    made.evaluated.indices <= task.end - task.start && made.block.len() <= task.extent.len()
}

impl State {
    fn put(&mut self, key: Key, entry: Entry) {
        self.bytes += entry.len();
        if let Some(old) = self.entries.insert(key, entry) {
            self.bytes -= old.len();
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(old) = self.entries.remove(key) {
            self.bytes -= old.len();
        }
    }

    fn sweep(&mut self, now: Instant) {
        let Self { entries, bytes } = self;
        entries.retain(|_, entry| {
            let stays =
                !matches!(entry, Entry::Ready { since, .. } if now.saturating_duration_since(*since) > KEPT_FOR);
            *bytes -= if stays { 0 } else { entry.len() };
            stays
        });
    }

    /// Drops answers until at most `most` bytes are kept.
    fn shrink(&mut self, most: usize) {
        while self.bytes > most {
            let used = |entry: &Entry| match entry {
                Entry::Ready { used, .. } => Some(*used),
                Entry::UnderWay => None,
            };
            let oldest = self.entries.iter().filter_map(|(key, entry)| Some((used(entry)?, key)));
            let Some(key) = oldest.min_by_key(|(used, _)| *used).map(|(_, key)| key.clone()) else { return };
            self.remove(&key);
        }
    }
}

impl Entry {
    fn len(&self) -> usize {
        match self {
            Self::UnderWay => 0,
            Self::Ready { made, .. } => made.block.len(),
        }
    }
}

/// The right to make an answer that other threads wait for.
struct Claim<'a> {
    cache: &'a Cache,
    key: Key,
    made: Option<Made>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state.locked();
        if let Some(made) = self.made.take() {
            let now = Instant::now();
            state.put(self.key.clone(), Entry::Ready { made: Box::new(made), since: now, used: now });
            state.shrink(self.cache.most_bytes);
        } else {
            state.remove(&self.key)
        }
        drop(state);
        self.cache.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::error::Error;
    use crate::workers::slab::{ExtentId, PAGE};

    fn task(range: std::ops::Range<u64>, pages: u32) -> Task {
        let extent = ExtentId { page: 0, pages, generation: 0 };
        let (listed, groups_from, lane) = (None, None, None);
        Task {
            id: 0,
            border: 0.into(),
            start: range.start,
            end: range.end,
            listed,
            groups_from,
            lane,
            fed: None,
            alone: false,
            extent,
        }
    }

    fn made(indices: u64, bytes: usize) -> Made {
        let evaluated = Evaluated { indices, used: bytes, ..Evaluated::default() };
        Made { evaluated, took: Duration::ZERO, block: Buffer::copy_from(&vec![7; bytes]) }
    }

    /// Returns true if the answer had to be made.
    fn ask(kept: &Cache, task: &Task, bytes: usize) -> bool {
        let mut was_made = false;
        let found = kept.find_or(1, task, || {
            was_made = true;
            Ok(made(task.end - task.start, bytes))
        });
        assert_eq!(found.unwrap().evaluated.kept, !was_made);
        was_made
    }

    #[test]
    fn an_answer_counts_for_whoever_asks_for_as_much_or_more_and_has_room() {
        let kept = Cache::new(1 << 20);
        assert!(ask(&kept, &task(0..10, 1), 100));
        assert!(!ask(&kept, &task(0..10, 1), 100) && !ask(&kept, &task(0..20, 1), 100));
        // Less was requested; the shorter answer then replaces the kept answer.
        assert!(ask(&kept, &task(0..5, 1), 50) && !ask(&kept, &task(0..10, 1), 100));
        assert!(ask(&kept, &task(1..5, 1), 50));
        assert!(ask(&kept, &task(30..40, 2), PAGE + 1) && ask(&kept, &task(30..40, 1), 10));
        let mut other = task(0..5, 1);
        other.listed = Some(vec![4, 3, 2, 1, 0]);
        assert!(ask(&kept, &other, 50) && !ask(&kept, &other, 50));
    }

    #[test]
    fn bytes_are_bounded_and_what_was_asked_for_last_stays() {
        let kept = Cache::new(1000);
        (0..3).for_each(|n| assert!(ask(&kept, &task(n..n + 1, 1), 300)));
        assert!(!ask(&kept, &task(0..1, 1), 300));
        assert!(ask(&kept, &task(3..4, 1), 300));
        assert_eq!(kept.bytes(), 900);
        assert!(!ask(&kept, &task(0..1, 1), 300) && ask(&kept, &task(1..2, 1), 300));
        assert!(ask(&kept, &task(9..10, 1), 1001) && ask(&kept, &task(9..10, 1), 1001));
        assert!(kept.bytes() <= 1000);
    }

    #[test]
    fn what_somebody_is_at_is_made_once_and_by_others_where_that_fails() {
        let (kept, count, begun) = (Cache::new(1000), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let _ = kept.find_or(1, &task(0..1, 1), || {
                        // The other threads are about to request it, too.
                        while begun.load(Ordering::SeqCst) < 8 {
                            thread::yield_now();
                        }
                        match count.fetch_add(1, Ordering::SeqCst) {
                            0 => Err(Error::data("the first fails")),
                            _ => Ok(made(1, 10)),
                        }
                    });
                });
            }
        });
        assert_eq!(count.into_inner(), 2);
    }

    #[test]
    fn nothing_is_kept_for_longer_than_a_moment() {
        let kept = Cache::new(1000);
        let before = Instant::now();
        assert!(ask(&kept, &task(0..1, 1), 300));
        kept.sweep(before + KEPT_FOR);
        assert_eq!(kept.bytes(), 300);
        kept.sweep(Instant::now() + KEPT_FOR + Duration::from_nanos(1));
        assert_eq!(kept.bytes(), 0);
        assert!(ask(&kept, &task(0..1, 1), 300));
    }
}
