//! The number of elements that are evaluated at once.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::cx::Cx;
use crate::dataset::map::{Many, MapDataset};
use crate::dataset::stage::Stage;

/// Target time of a chunk. It is long compared with the fixed cost of a chunk. It is short enough to keep intermediate
/// data in the cache, and not to delay the consumer.
const AIM: Duration = Duration::from_micros(50);
/// Maximum size of a chunk. Larger chunks are not faster, even for cheap elements.
const MOST: u32 = 1024;
/// Chunks with fewer elements are evaluated element by element, because the fixed cost of a chunk is as high.
const FEW: usize = 8;
/// Minimum size of a chunk if a source reads many elements at once.
const TOGETHER: u32 = 256;

/// The size of chunks: initially 1, then the number of elements that take [`AIM`]. It affects timing and cost, never
/// the elements. Threads may share a `Pace`.
#[derive(Debug)]
pub(crate) struct Pace {
    size: AtomicU32,
    /// The minimum size.
    least: u32,
}

/// A clone starts from the current size.
impl Clone for Pace {
    fn clone(&self) -> Self {
        Self { size: AtomicU32::new(self.size.load(Ordering::Relaxed)), least: self.least }
    }
}

impl Pace {
    /// Returns the pace for the elements of `dataset`.
    pub(crate) fn of(dataset: &dyn Stage) -> Self {
        let least = if dataset.any_reads_together() { TOGETHER } else { 1 };
        Self { size: AtomicU32::new(least), least }
    }

    /// Returns true if chunks have a larger minimum size, because a source reads many elements at once.
    pub(crate) fn is_together(&self) -> bool {
        self.least > 1
    }

    /// Evaluates `range`, a chunk of `dataset`, by the faster method for its length.
    pub(crate) fn get<D: MapDataset>(&self, dataset: &D, range: Range<u64>, cx: &mut Cx) -> Many<D::Item> {
        let indices: Vec<u64> = range.collect();
        if self.is_together() { together(dataset, &indices, cx) } else { get_chunk(dataset, &indices, cx) }
    }

    /// Evaluates a chunk from the start of `range`, and removes it from `range`. A chunk has the current size, and at
    /// least one index if `range` is not empty.
    pub(crate) fn chunk<T>(
        &self,
        range: &mut Range<u64>,
        cx: &mut Cx,
        evaluate: impl FnOnce(Range<u64>, &mut Cx) -> T,
    ) -> T {
        let size = self.size.load(Ordering::Relaxed);
        let chunk = range.start..range.end.min(range.start.saturating_add(size.into()));
        range.start = chunk.end;
        let (first, count) = (chunk.start, chunk.end - chunk.start);
        // At full size, evaluating a chunk may be as cheap as reading the clock.
        let start = (size != MOST || cx.looks()).then(Instant::now);
        let evaluated = evaluate(chunk, cx);
        if let Some(start) = start.filter(|_| count > 0) {
            let took = start.elapsed();
            cx.took(first, count, took);
            self.size.store(next(size, count, took).max(self.least), Ordering::Relaxed);
        }
        evaluated
    }
}

/// Returns the size of the next chunk, after a chunk size of `size`. `count` elements took the time `took`.
fn next(size: u32, count: u64, took: Duration) -> u32 {
    let each = (took.as_nanos() as u64 / count).max(1);
    let fits = u32::try_from(AIM.as_nanos() as u64 / each).unwrap_or(MOST);
    // Limits the decrease, because a thread may merely have waited for a core.
    fits.clamp(size.div_ceil(4), size.saturating_mul(2)).clamp(1, MOST)
}

/// Evaluates `indices` of `dataset` by the faster method for their number.
pub(crate) fn get_chunk<D: MapDataset>(dataset: &D, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
    if indices.len() >= FEW {
        return together(dataset, indices, cx);
    }
    Many::one_by_one(indices, |index| dataset.get(index, cx))
}

fn together<D: MapDataset>(dataset: &D, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
    let many = dataset.get_many(indices, cx);
    if many.len() == indices.len() {
        return many;
    }
    // The stage has violated the contract of `get_many`.
    Many::one_by_one(indices, |index| dataset.get(index, cx))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range as Numbers;

    #[test]
    fn chunks_grow_to_their_time_and_shrink_in_steps() {
        let settled =
            |ns: u64| (0..30).fold(1, |size, _| next(size, size.into(), Duration::from_nanos(ns * u64::from(size))));
        assert_eq!((settled(1), settled(500), settled(20_000), settled(1_000_000)), (MOST, 100, 2, 1));
        assert_eq!(next(1024, 1024, Duration::from_secs(1)), 256);
        assert_eq!(next(1024, 64, Duration::from_micros(2)), 1024);
        assert_eq!(next(16, 16, Duration::ZERO), 32);
    }

    #[test]
    fn a_range_is_evaluated_once_and_in_order() {
        let (pace, mut cx, mut range, mut seen) = (Pace::of(&Numbers::new(0, 1)), Cx::default(), 5..2000, Vec::new());
        while !range.is_empty() {
            let many = pace.chunk(&mut range, &mut cx, |chunk, _| Many::from(chunk.collect::<Vec<u64>>()));
            assert!(!many.is_empty());
            seen.extend(many.dense().unwrap());
        }
        assert_eq!(seen, (5..2000).collect::<Vec<_>>());
    }
}
