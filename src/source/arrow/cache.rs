//! Decoded rows, shared by all threads, least recently used out first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::spans::Span;

/// A part of the data, and a piece of it: a row group and a span, a file and a record batch.
pub(crate) type Key = (usize, u64);

pub(crate) struct Cache {
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
    span: Arc<Span>,
    bytes: usize,
    used: u64,
}

impl Cache {
    /// Holds up to `budget` bytes, and the latest span whatever its size.
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, inner: Mutex::default() }
    }

    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<Span>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let clock = inner.clock;
        let entry = inner.spans.get_mut(&key)?;
        entry.used = clock;
        Some(entry.span.clone())
    }

    /// Keeps a span that takes so many bytes of memory.
    pub(crate) fn put(&self, key: Key, span: Span, bytes: usize) -> Arc<Span> {
        let span = Arc::new(span);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.clock += 1;
        let entry = Entry { span: span.clone(), bytes, used: inner.clock };
        inner.bytes += bytes;
        if let Some(old) = inner.spans.insert(key, entry) {
            inner.bytes -= old.bytes;
        }
        while inner.bytes > self.budget && inner.spans.len() > 1 {
            inner.evict(key);
        }
        span
    }
}

impl Inner {
    /// Drops an eighth of the spans, one at least, but never `kept`: one at a time, each would be looked for among all.
    fn evict(&mut self, kept: Key) {
        let mut ages: Vec<(u64, Key)> =
            self.spans.iter().filter(|(key, _)| **key != kept).map(|(&key, entry)| (entry.used, key)).collect();
        let count = ages.len().div_ceil(8);
        if count < ages.len() {
            ages.select_nth_unstable(count);
        }
        for (_, key) in ages.into_iter().take(count) {
            self.bytes -= self.spans.remove(&key).map_or(0, |entry| entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::source::arrow::value::Memory;

    fn batch(rows: i64) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_from_iter([("x", column)]).unwrap()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let put = |cache: &Cache, key, rows| {
            let batch = batch(rows);
            let bytes = batch.get_array_memory_size();
            cache.put(key, Span::new(&batch, 0..1, Memory::Copied), bytes);
        };
        let cache = Cache::new(3 * batch(1000).get_array_memory_size());
        for span in 0..3 {
            put(&cache, (0, span), 1000);
        }
        assert!(cache.get((0, 0)).is_some());
        put(&cache, (0, 3), 1000);
        let held: Vec<bool> = (0..4).map(|span| cache.get((0, span)).is_some()).collect();
        assert_eq!(held, [true, false, true, true]);
        put(&cache, (0, 3), 10);
        assert!(cache.get((0, 0)).is_some());
        put(&cache, (1, 0), 100_000);
        assert!(cache.get((1, 0)).is_some() && cache.get((0, 0)).is_none());
    }
}
