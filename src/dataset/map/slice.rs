use std::ops::{Bound, RangeBounds};

use super::epochs;
use super::order::{Order, Ordered};
use crate::dataset::INFINITE;
use crate::dataset::blocks::Blocks;
use crate::dataset::entry::prelude::*;
use crate::dataset::stage::Stage;
use crate::error::{Error, Result};

/// See [`slice`], [`slice_step`] and [`shard`].
///
/// [`slice`]: super::MapDatasetExt::slice
/// [`slice_step`]: super::MapDatasetExt::slice_step
/// [`shard`]: super::MapDatasetExt::shard
pub type Slice<D> = Ordered<D, SliceOrder>;

/// The order of [`Slice`]: elements at equal distances.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SliceOrder {
    asked: Asked,
    cut: Cut,
    parent_len: u64,
}

/// Arguments from the user.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Slice(PySlice),
    Shard { index: u64, count: u64 },
}

/// `start:stop:step` as in Python. Negative numbers count from the end. A missing start or stop is an end of the
/// dataset.
#[derive(Clone, Copy, Debug)]
struct PySlice {
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
}

/// `len` elements at distance `step`, the first at index `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    start: u64,
    step: i64,
    len: u64,
}

impl Cut {
    /// Returns the index of element `k`, or `None` past the last index.
    #[inline]
    fn at(self, k: u64) -> Option<u64> {
        let distance = (k as i64).checked_mul(self.step)?;
        self.start.checked_add_signed(distance)
    }

    /// Returns the element at index `at`, if the cut contains it.
    fn find(self, at: u64) -> Option<u64> {
        let (distance, step) = (i128::from(at) - i128::from(self.start), i128::from(self.step));
        let k = u64::try_from(distance / step).ok().filter(|_| distance % step == 0)?;
        (k < self.len).then_some(k)
    }
}

impl SliceOrder {
    pub(super) fn new(parent_len: u64, range: &impl RangeBounds<i64>, step: i64) -> Self {
        Self::build(parent_len, Asked::Slice(PySlice::from_bounds(range, step)))
    }

    pub(super) fn shard(parent_len: u64, index: u64, count: u64) -> Self {
        Self::build(parent_len, Asked::Shard { index, count })
    }

    fn build(parent_len: u64, asked: Asked) -> Self {
        // Invalid arguments give an empty order here, and an error in `check`.
        let cut = asked.cut(parent_len).unwrap_or(Cut { start: 0, step: 1, len: 0 });
        Self { asked, cut, parent_len }
    }
}

impl Asked {
    fn cut(self, len: u64) -> Result<Cut> {
        match self {
            Self::Slice(slice) => slice.cut(len),
            Self::Shard { index, count } => match (i64::try_from(index), i64::try_from(count)) {
                (Ok(start), Ok(step)) if index < count => PySlice { start: Some(start), stop: None, step }.cut(len),
                _ => Err(Error::config(format!("shard {index} of {count}, and shards count from 0 to {count} - 1"))),
            },
        }
    }
}

impl PySlice {
    fn from_bounds(range: &impl RangeBounds<i64>, step: i64) -> Self {
        let beyond = |i: i64| if step < 0 { i.saturating_sub(1) } else { i.saturating_add(1) };
        // No number refers to the element before the first or after the last.
        let last = if step < 0 { 0 } else { -1 };
        let start = match range.start_bound() {
            Bound::Included(&i) => Some(i),
            Bound::Excluded(&i) if i == last => Some(if step < 0 { i64::MIN } else { i64::MAX }),
            Bound::Excluded(&i) => Some(beyond(i)),
            Bound::Unbounded => None,
        };
        let stop = match range.end_bound() {
            Bound::Included(&i) if i == last => None,
            Bound::Included(&i) => Some(beyond(i)),
            Bound::Excluded(&i) => Some(i),
            Bound::Unbounded => None,
        };
        Self { start, stop, step }
    }

    /// Computes Python's `slice.indices` and the length of the resulting range.
    fn cut(self, len: u64) -> Result<Cut> {
        let Self { start, stop, step } = self;
        if step == 0 {
            return Err(Error::config("a slice needs a step other than 0"));
        }
        if len >= INFINITE {
            return self.cut_infinite();
        }
        let (len, step128) = (i128::from(len), i128::from(step));
        let (lower, upper) = if step < 0 { (-1, len - 1) } else { (0, len) };
        let clamp = |i: i64| {
            let i = i128::from(i);
            if i < 0 { (i + len).max(lower) } else { i.min(upper) }
        };
        let start = start.map_or(if step < 0 { upper } else { lower }, clamp);
        let stop = stop.map_or(if step < 0 { lower } else { upper }, clamp);
        let span = if step < 0 { start - stop } else { stop - start };
        let count = (span.max(0) as u128).div_ceil(step128.unsigned_abs()) as u64;
        Ok(Cut { start: start.max(0) as u64, step, len: count })
    }

    /// Cuts an infinite dataset. Rejects indices from the end. Without a stop and with a positive step, the result is
    /// infinite.
    fn cut_infinite(self) -> Result<Cut> {
        let Self { start, stop, step } = self;
        if start.is_some_and(i64::is_negative) || stop.is_some_and(i64::is_negative) || (step < 0 && start.is_none()) {
            return Err(Error::config(format!("slice {self} counts from the end of a dataset that has none"))
                .help("slice before `repeat`, or count from the start"));
        }
        match (step > 0, stop) {
            (true, None) => Ok(Cut { start: start.unwrap_or(0) as u64, step, len: INFINITE }),
            // The result is finite, as for a dataset of the largest finite length.
            _ => self.cut(INFINITE - 1),
        }
    }
}

display_as!(PySlice, |self, f| {
    let number = |n: Option<i64>| n.map_or_else(String::new, |n| n.to_string());
    write!(f, "{}:{}", number(self.start), number(self.stop))?;
    if self.step == 1 { Ok(()) } else { write!(f, ":{}", self.step) }
});

impl Order for SliceOrder {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    fn name(&self) -> &'static str {
        match self.asked {
            Asked::Slice(_) => "slice",
            Asked::Shard { .. } => "shard",
        }
    }
    fn params(&self) -> String {
        match self.asked {
            Asked::Slice(slice) => slice.to_string(),
            Asked::Shard { index, count } => format!("{index} of {count}"),
        }
    }
    fn len(&self, _: u64) -> u64 {
        self.cut.len
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        let Some((epoch, k)) = epochs::split(index, self.cut.len) else { return Ok(None) };
        let at = self.cut.at(k).ok_or_else(|| too_far(k, self.cut.step))?;
        epochs::join(epoch, self.parent_len, at).map(Some)
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        let found = epochs::split(place, self.parent_len).and_then(|(epoch, at)| Some((epoch, self.cut.find(at)?)));
        found.map(|(epoch, k)| epochs::join(epoch, self.cut.len, k)).transpose()
    }
    fn lower(&self, place: u64) -> Option<u64> {
        let (epoch, at) = epochs::split(place, self.parent_len)?;
        let k = self.cut.find(at).filter(|_| self.cut.step > 0);
        epochs::join(epoch, self.cut.len, k.unwrap_or(0)).ok()
    }
    fn blocks(&self, parent: &dyn Stage) -> Option<Blocks> {
        let kept = self.cut.start..self.cut.start.checked_add(self.cut.len)?;
        parent.blocks().filter(|_| self.cut.step == 1)?.cut(kept)
    }
    fn check(&self) -> Result<()> {
        self.asked.cut(self.parent_len).map(drop)
    }
}

#[cold]
fn too_far(k: u64, step: i64) -> Error {
    Error::config(format!("element {k} in steps of {step} is past the last index, {}", u64::MAX))
}

arguments! {
    struct SliceArgs {
        /// Index of the first element; a negative index counts from the end. By default, the slice begins at the first element.
        start: Option<i64>,
        /// Index after the last element; a negative index counts from the end. By default, the slice extends to the end.
        stop: Option<i64>,
        /// Step from one index to the next; not 0.
        step: i64 = 1,
    }
}

pub(super) const SLICE: StageEntry = StageEntry::map(
    "slice",
    "Takes a slice of the elements, as Python's `ds[start:stop:step]`.",
    &Behind(|ds: BoxMap<Element>, SliceArgs { start, stop, step }: SliceArgs, _| {
        let bounds = (start.map_or(Bound::Unbounded, Bound::Included), stop.map_or(Bound::Unbounded, Bound::Excluded));
        Ok(ds.slice_step(bounds, step).boxed())
    }),
);

arguments! {
    struct ShardArgs {
        /// Index of the shard, from 0.
        index: u64,
        /// Number of shards.
        count: Positive<u64>,
    }
}

pub(super) const SHARD: StageEntry = StageEntry::map(
    "shard",
    "Takes every `count`-th element from `index` on: the shard of host `index` of `count` hosts.\n\n\
     ConfigError: There is no such shard.",
    &Behind(|ds: BoxMap<Element>, ShardArgs { index, count }: ShardArgs, _| Ok(ds.shard(index, count.0).boxed())),
);

#[cfg(test)]
#[expect(clippy::reversed_empty_ranges, reason = "negative ends count from the end, as in Python")]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};
    use proptest::prelude::*;

    fn at(ds: &impl MapDataset<Item = i64>, indices: &[u64]) -> Vec<i64> {
        let mut cx = Cx::default();
        indices.iter().map(|&i| ds.get(i, &mut cx).unwrap().unwrap()).collect()
    }

    #[test]
    fn slices_as_python_does() {
        let ds = || Range::new(0, 10);
        assert_eq!(ds().slice(2..5).collect().unwrap(), [2, 3, 4]);
        assert_eq!(ds().slice(-3..).collect().unwrap(), [7, 8, 9]);
        assert_eq!(ds().slice(..-7).collect().unwrap(), [0, 1, 2]);
        assert_eq!(ds().slice(..=2).collect().unwrap(), [0, 1, 2]);
        assert_eq!(ds().slice(8..=-1).collect().unwrap(), [8, 9]);
        assert_eq!(ds().slice(5..2).collect().unwrap(), [0; 0]);
        assert_eq!(ds().slice_step(1..8, 3).collect().unwrap(), [1, 4, 7]);
        assert_eq!(ds().slice_step(.., -4).collect().unwrap(), [9, 5, 1]);
        assert_eq!(ds().slice_step(3..=0, -1).collect().unwrap(), [3, 2, 1, 0]);
        assert_eq!(ds().slice(8..100).collect().unwrap(), [8, 9]);
        assert_eq!(ds().slice_step(-100..100, i64::MAX).collect().unwrap(), [0]);
        assert_eq!(ds().slice_step(.., i64::MIN).collect().unwrap(), [9]);
    }

    #[test]
    fn a_later_epoch_is_the_slice_of_the_parents_later_epoch() {
        // Element k of epoch e is start + k * step + e * len(parent). Two epochs of a range show the indices that are
        // read.
        let ds = Range::new(0, 100).map_with_index(|i, _| i.global as i64).slice_step(10..40, 10);
        assert_eq!(at(&ds, &[0, 1, 2, 3, 4, 5, 6]), [10, 20, 30, 110, 120, 130, 210]);
        let back = Range::new(0, 5).map_with_index(|i, _| i.global as i64).slice_step(.., -2);
        assert_eq!(at(&back, &[0, 1, 2, 3, 4, 5, 6]), [4, 2, 0, 9, 7, 5, 14]);
    }

    #[test]
    fn shards_part_the_dataset() {
        let shards = (0..3).map(|i| Range::new(0, 8).shard(i, 3).collect().unwrap());
        assert_eq!(shards.collect::<Vec<_>>(), [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]);
        let ds = Range::new(0, 8).shard(1, 3);
        assert_eq!((&ds as &dyn Stage).lines()[1], "shard(1 of 3)");
        for (index, count) in [(3, 3), (0, 0), (1, u64::MAX)] {
            let error = Range::new(0, 8).shard(index, count).node().describe.check().unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Config);
        }
    }

    #[test]
    fn a_dataset_without_end_is_cut_from_the_start_only() {
        let ds = || Range::new(0, 10).repeat(None);
        assert_eq!(ds().slice(3..6).collect().unwrap(), [3, 4, 5]);
        assert_eq!(ds().slice_step(12..=9, -1).collect().unwrap(), [2, 1, 0, 9]);
        let rest = ds().slice_step(4.., 3);
        assert_eq!(rest.len(), INFINITE);
        assert_eq!(at(&rest, &[0, 1, 2, 3]), [4, 7, 0, 3]);
        assert!(rest.get(INFINITE / 2, &mut Cx::default()).is_err());
        for bad in [ds().slice(-3..), ds().slice(..-1), ds().slice_step(.., -1)] {
            assert!(bad.node().describe.check().unwrap_err().message().contains("counts from the end"));
            assert_eq!(bad.len(), 0);
        }
    }

    #[test]
    fn a_step_of_0_is_refused_when_it_is_checked() {
        let ds = Range::new(0, 3).slice_step(.., 0);
        assert_eq!(ds.node().describe.check().unwrap_err().message(), "a slice needs a step other than 0");
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap(), None);
    }

    /// The definition in words: steps from start until stop.
    fn walk(len: i64, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<i64> {
        let from_end = |i: i64| if i < 0 { i + len } else { i };
        let mut at = match start.map(from_end) {
            None if step > 0 => 0,
            None => len - 1,
            Some(i) if step > 0 => i.max(0),
            Some(i) => i.min(len - 1),
        };
        let mut seen = Vec::new();
        while (0..len).contains(&at) && stop.map(from_end).is_none_or(|s| if step > 0 { at < s } else { at > s }) {
            seen.push(at);
            at += step;
        }
        seen
    }

    proptest! {
        #[test]
        fn equals_a_walk(len in 0..12i64, start in -15..15i64, stop in -15..15i64, open in 0..4, step in -5..5i64) {
            prop_assume!(step != 0);
            let (start, stop) = ((open & 1 == 0).then_some(start), (open & 2 == 0).then_some(stop));
            let bounds = (start.map_or(Bound::Unbounded, Bound::Included), stop.map_or(Bound::Unbounded, Bound::Excluded));
            let sliced = Range::new(0, len).slice_step(bounds, step).collect().unwrap();
            prop_assert_eq!(sliced, walk(len, start, stop, step));
        }

        #[test]
        fn a_record_has_the_index_at_which_it_comes_and_none_outside_the_slice(
            len in 0..12u64, start in -15..15i64, stop in -15..15i64, step in -5..5i64,
        ) {
            prop_assume!(step != 0);
            let order = SliceOrder::new(len, &(start..stop), step);
            let indices = 0..3 * order.len(len);
            for record in 0..3 * len {
                let comes = indices.clone().find(|&index| order.place(index).unwrap() == Some(record));
                prop_assert_eq!(order.inverse(record).unwrap(), comes, "record {}", record);
            }
        }
    }
}
