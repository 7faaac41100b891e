use super::parents::Parents;
use super::{Many, MapDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::node::{Describe, Node};
use crate::dataset::run::pace::get_chunk;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};

/// See [`MapDatasetExt::zip`](super::MapDatasetExt::zip).
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Zip<A, B> {
    first: A,
    second: B,
    /// First stage id of the second dataset.
    offset: usize,
    stage: StageId,
}

impl<A: MapDataset, B: MapDataset> Zip<A, B> {
    pub(super) fn new(first: A, second: B) -> Self {
        let stage = stage_after(&[&first, &second]);
        Self { offset: (&first as &dyn Stage).count(), first, second, stage }
    }
}

impl<A: MapDataset, B: MapDataset> Stage for Zip<A, B> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, is_native: true, ..Node::new("zip", Role::Elementwise) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.first, &self.second]
    }
}

impl<A: MapDataset, B: MapDataset> Describe for Zip<A, B> {
    fn check(&self) -> Result<()> {
        equal_lengths([self.first.len(), self.second.len()])
    }
}

impl<A: MapDataset, B: MapDataset> MapDataset for Zip<A, B> {
    type Item = (A::Item, B::Item);

    fn len(&self) -> u64 {
        self.first.len().min(self.second.len())
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Self::Item>> {
        let Some(first) = self.first.get(index, cx)? else { return Ok(None) };
        let Some(second) = cx.within(self.offset, |cx| self.second.get(index, cx))? else { return Ok(None) };
        cx.produced(self.stage, 1, 0);
        Ok(Some((first, second)))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Self::Item> {
        let first = self.first.get_many(indices, cx);
        let pairs =
            cx.within(self.offset, |cx| beside(first, indices, &self.second, cx, |first, second| (first, second)));
        cx.produced(self.stage, pairs.items().len() as u64, 0);
        pairs
    }
}

/// Elements of several datasets of one type, zipped into lists by the rules of [`zip`](super::MapDatasetExt::zip).
///
/// ```
/// use gristmill::{dataset::map::{Range, ZipAll}, prelude::*};
/// let ds = ZipAll::new(vec![Range::new(0, 2), Range::new(10, 12), Range::new(20, 22)]);
/// assert_eq!(ds.collect()?, [[0, 10, 20], [1, 11, 21]]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct ZipAll<D> {
    parents: Parents<D>,
}

impl<D: MapDataset> ZipAll<D> {
    /// Zips the elements of `datasets`.
    pub fn new(datasets: Vec<D>) -> Self {
        Self { parents: Parents::new(datasets) }
    }
}

impl<D: MapDataset> Stage for ZipAll<D> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, is_native: true, ..Node::new("zip", Role::Elementwise) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.stages()
    }
}

impl<D: MapDataset> Describe for ZipAll<D> {
    fn params(&self) -> String {
        self.parents.count().to_string()
    }
    fn check(&self) -> Result<()> {
        if self.parents.count() == 0 {
            return Err(Error::config("the number of datasets to zip is 0, and must be 1 or more"));
        }
        equal_lengths(self.parents.lens())
    }
}

impl<D: MapDataset> MapDataset for ZipAll<D> {
    type Item = Vec<D::Item>;

    fn len(&self) -> u64 {
        self.parents.lens().min().unwrap_or(0)
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Self::Item>> {
        let mut all = Vec::with_capacity(self.parents.count());
        for which in 0..self.parents.count() {
            let Some(element) = self.parents.get(which, index, cx)? else { return Ok(None) };
            all.push(element);
        }
        cx.produced(self.parents.stage, 1, 0);
        Ok(Some(all))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Self::Item> {
        let count = self.parents.count();
        let mut rows = Many::from(indices.iter().map(|_| Vec::with_capacity(count)).collect::<Vec<_>>());
        let add = |mut row: Vec<D::Item>, item| {
            row.push(item);
            row
        };
        for which in 0..count {
            rows = self.parents.in_part(which, cx, |part, cx| beside(rows, indices, part, cx, add));
        }
        cx.produced(self.parents.stage, rows.items().len() as u64, 0);
        rows
    }
}

/// Joins `items` at `indices` with the elements of `other`. Reads `other` only at places that have an item.
fn beside<T, D: MapDataset, U>(
    items: Many<T>,
    indices: &[u64],
    other: &D,
    cx: &mut Cx,
    join: impl Fn(T, D::Item) -> U,
) -> Many<U> {
    let mut wanted = Vec::with_capacity(indices.len());
    let items = items.map(|place, item| {
        wanted.push(indices[place]);
        item
    });
    let mut others = get_chunk(other, &wanted, cx).into_iter();
    items.filter_map(|_, item| Ok(others.next().unwrap_or(Ok(None))?.map(|other| join(item, other))))
}

fn equal_lengths(lens: impl IntoIterator<Item = u64>) -> Result<()> {
    let mut lens = lens.into_iter().enumerate();
    let Some((_, first)) = lens.next() else { return Ok(()) };
    match lens.find(|&(_, len)| len != first) {
        None => Ok(()),
        Some((at, len)) => Err(Error::config(format!(
            "datasets of different lengths cannot be zipped: dataset 0 has {first} elements, dataset {at} has {len}"
        ))
        .help("cut the longer one: `.slice(..n)`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::dataset::map::Range;

    #[test]
    fn a_slot_dropped_on_either_side_drops_the_pair() {
        let ds = Range::new(0, 6).filter(|x| x % 2 == 0).zip(Range::new(0, 6).filter(|x| x % 3 == 0));
        assert_eq!(ds.len(), 6);
        assert_eq!(ds.collect().unwrap(), [(0, 0)]);
        let evens = || Range::new(0, 6).filter(|x| x % 2 == 0);
        assert_eq!(ZipAll::new(vec![evens(), evens()]).collect().unwrap(), [[0, 0], [2, 2], [4, 4]]);
    }

    #[test]
    fn later_epochs_are_zipped_with_each_other() {
        let globals = || Range::new(0, 3).map_with_index(|i, _| i.global);
        assert_eq!(globals().zip(globals()).get(7, &mut Cx::default()).unwrap(), Some((7, 7)));
        assert_eq!(ZipAll::new(vec![globals(); 3]).get(4, &mut Cx::default()).unwrap(), Some(vec![4; 3]));
    }

    #[test]
    fn lengths_must_be_equal() {
        let error = Range::new(0, 3).zip(Range::new(0, 4)).check().unwrap_err();
        assert!(error.message().ends_with("dataset 0 has 3 elements, dataset 1 has 4"), "{error}");
        assert!(ZipAll::new(vec![Range::new(0, 3), Range::new(0, 3), Range::new(0, 2)]).check().is_err());
        assert!(ZipAll::new(Vec::<Range>::new()).check().is_err());
        assert!(Range::new(0, 3).zip(Range::new(5, 8)).check().is_ok());
    }

    #[test]
    fn each_side_keeps_its_own_stage_numbers() {
        let bad = Range::new(0, 2).try_map(|_| Err::<i64, _>(Error::data("no")));
        let ds = Range::new(0, 2).map(|x| x).zip(bad);
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap_err().to_string(), "stage 3 map: no");
    }
}
