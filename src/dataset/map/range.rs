use super::{BulkRead, Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::node::{Describe, Indices, Moves, Node, Records, address};
use crate::dataset::run::upcoming::{Record, Upcoming};
use crate::dataset::stage::{Role, Stage};
use crate::error::{Error, Result};

/// Integers `start, start + step, …` below `stop` (above it, for a negative step): Grain's `MapDataset.range`.
///
/// ```
/// use gristmill::{dataset::map::Range, prelude::*};
/// assert_eq!(Range::new(2, 5).collect()?, [2, 3, 4]);
/// assert_eq!(Range::with_step(10, 0, -4)?.collect()?, [10, 6, 2]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Range {
    start: i64,
    step: i64,
    len: u64,
    stop: i64,
}

impl Range {
    /// Makes the range `start..stop`.
    pub fn new(start: i64, stop: i64) -> Self {
        Self { start, stop, step: 1, len: stop.saturating_sub(start).max(0) as u64 }
    }

    /// Makes the range of every `step`-th integer.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if `step` is 0.
    pub fn with_step(start: i64, stop: i64, step: i64) -> Result<Self> {
        if step == 0 {
            return Err(Error::config("a range needs a step other than 0"));
        }
        let span = if step > 0 { i128::from(stop) - i128::from(start) } else { i128::from(start) - i128::from(stop) };
        let steps = (span.max(0) as u128).div_ceil(i128::from(step).unsigned_abs());
        Ok(Self { start, stop, step, len: steps.min(i64::MAX as u128) as u64 })
    }
}

impl Range {
    /// Returns the number at `place`, which must be below the length.
    #[inline]
    fn number(&self, place: u64) -> i64 {
        // The result is in `start..stop`. The product may wrap, and the sum wraps back.
        self.start.wrapping_add(self.step.wrapping_mul(place as i64))
    }
}

impl Stage for Range {
    fn node(&self) -> Node<'_> {
        let (indices, source) = (Indices::Moved(self), Some(self as &dyn Records));
        Node { describe: self, is_native: true, indices, source, ..Node::new("range", Role::Source) }
    }
    facts! { parents: Vec::new() }
}

impl Describe for Range {
    fn params(&self) -> String {
        format!("{}, {}, {}", self.start, self.stop, self.step)
    }
}

impl Moves for Range {
    fn will_read(&self, next: Upcoming<'_>) {
        next.reaches("range", self, self.len);
    }
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        record.index_in("range", self.len, epoch)
    }
}

impl Records for Range {
    fn records(&self) -> Option<u64> {
        Some(self.len)
    }
}

impl MapDataset for Range {
    type Item = i64;

    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<i64>> {
        if self.len == 0 { Ok(None) } else { Ok(Some(cx.timed(StageId(0), || self.number(index % self.len)))) }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<i64> {
        if self.len == 0 {
            return Many::one_by_one(indices, |_| Ok(None));
        }
        let numbers = || {
            // Avoids a division per index, which would cost more than the rest. The highest bit of the result is set if an
            // index is not below the length: both numbers are below 2^63 otherwise. A loop without an early exit uses
            // vector instructions, and its speed does not depend on its alignment.
            let above = |bits, &index: &u64| bits | index | (self.len - 1).wrapping_sub(index);
            if indices.iter().fold(0, above) >> 63 == 0 {
                return indices.iter().map(|&index| self.number(index)).collect::<Vec<_>>();
            }
            indices.iter().map(|&index| self.number(index % self.len)).collect()
        };
        cx.timed_many(StageId(0), indices.len(), numbers).into()
    }

    reads_in_bulk!();
}

impl BulkRead<i64> for Range {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<i64>> {
        (source == address(self)).then(|| self.get_many(records, cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;

    #[test]
    fn extremes_do_not_overflow() {
        let all = Range::with_step(i64::MIN, i64::MAX, i64::MAX).unwrap();
        assert_eq!(all.collect().unwrap(), [i64::MIN, -1, i64::MAX - 1]);
        assert!(Range::with_step(0, 1, 0).is_err());
        assert_eq!(Range::new(5, 2).len(), 0);
    }

    #[test]
    fn later_epochs_start_again() {
        assert_eq!(Range::new(0, 3).get(7, &mut Cx::default()).unwrap(), Some(1));
    }

    #[test]
    fn chunks_equal_single_elements() {
        for len in [1, 3, i64::MAX] {
            let ds = Range::new(0, len);
            let places = [0, 1, 2, 3, 4, 1 << 62, (1 << 63) - 2, (1 << 63) - 1, 1 << 63, u64::MAX];
            for (from, to) in (0..=places.len()).flat_map(|from| (from..=places.len()).map(move |to| (from, to))) {
                let single = |&index: &u64| ds.get(index, &mut Cx::default()).unwrap().unwrap();
                let singles = places[from..to].iter().map(single).collect::<Vec<_>>();
                assert_eq!(ds.get_many(&places[from..to], &mut Cx::default()).items(), singles);
            }
        }
    }
}
