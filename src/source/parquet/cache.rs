//! Decoded spans, shared by all threads, least recently used out first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;

/// A group and a span of it.
pub(super) type Key = (usize, u64);

pub(super) struct Cache {
    budget: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    spans: HashMap<Key, Entry>,
    bytes: usize,
    clock: u64,
}

struct Entry {
    batch: Arc<RecordBatch>,
    bytes: usize,
    used: u64,
}

impl Cache {
    /// Holds up to `budget` bytes, and the latest span whatever its size.
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, inner: Mutex::default() }
    }

    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    pub(super) fn get(&self, key: Key) -> Option<Arc<RecordBatch>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let clock = inner.clock;
        let entry = inner.spans.get_mut(&key)?;
        entry.used = clock;
        Some(entry.batch.clone())
    }

    pub(super) fn put(&self, key: Key, batch: RecordBatch) -> Arc<RecordBatch> {
        let (bytes, batch) = (batch.get_array_memory_size(), Arc::new(batch));
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let entry = Entry { batch: batch.clone(), bytes, used: inner.clock };
        inner.bytes += bytes;
        if let Some(old) = inner.spans.insert(key, entry) {
            inner.bytes -= old.bytes;
        }
        while inner.bytes > self.budget && inner.spans.len() > 1 {
            inner.evict();
        }
        batch
    }
}

impl Inner {
    fn evict(&mut self) {
        let oldest = self.spans.iter().min_by_key(|(_, entry)| entry.used).map(|(&key, _)| key);
        if let Some(entry) = oldest.and_then(|key| self.spans.remove(&key)) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    fn batch(rows: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_from_iter([("x", column)]).unwrap()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = Cache::new(3 * batch(1000).get_array_memory_size());
        for span in 0..3 {
            cache.put((0, span), batch(1000));
        }
        assert!(cache.get((0, 0)).is_some());
        cache.put((0, 3), batch(1000));
        let held: Vec<bool> = (0..4).map(|span| cache.get((0, span)).is_some()).collect();
        assert_eq!(held, [true, false, true, true]);
        cache.put((0, 3), batch(10));
        assert!(cache.get((0, 0)).is_some());
        cache.put((1, 0), batch(100_000));
        assert!(cache.get((1, 0)).is_some() && cache.get((0, 0)).is_none());
    }
}
