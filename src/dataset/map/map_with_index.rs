use std::fmt;

use super::{Many, MapDataset, epochs};
use crate::cx::{Cx, StageId};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::element::Around;
use crate::error::Result;

/// Where an element stands: what [`MapDataset::map_with_index`] hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementIndex {
    /// The index that was asked for; it goes on over the epochs.
    pub global: u64,
    /// The epoch, from 0: `global` divided by the length.
    pub epoch: u64,
    /// The index in that epoch.
    pub in_epoch: u64,
}

impl ElementIndex {
    /// `global` in a dataset of `len` elements, which is not empty where there is an element.
    #[inline]
    fn new(global: u64, len: u64) -> Self {
        let (epoch, in_epoch) = epochs::split(global, len).unwrap_or((0, global));
        Self { global, epoch, in_epoch }
    }
}

/// See [`MapDataset::map_with_index`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct MapWithIndex<D, F> {
    parent: D,
    f: F,
    len: u64,
    stage: StageId,
}

impl<D: MapDataset, F> MapWithIndex<D, F> {
    pub(super) fn new(parent: D, f: F) -> Self {
        let stage = stage_after(&[&parent]);
        Self { len: parent.len(), parent, f, stage }
    }
}

impl<D: Stage, F> Stage for MapWithIndex<D, F> {
    fn name(&self) -> &'static str {
        "map_with_index"
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, U, F> MapDataset for MapWithIndex<D, F>
where
    D: MapDataset,
    F: Fn(ElementIndex, D::Item) -> U + Send + Sync,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        Ok(Some(cx.timed(self.stage, || (self.f)(ElementIndex::new(index, self.len), element))))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let many = self.parent.get_many(indices, cx);
        let apply = |place: usize, element| (self.f)(ElementIndex::new(indices[place], self.len), element);
        cx.timed_many(self.stage, many.items().len(), || many.map(apply))
    }
}

impl<D: fmt::Debug, F> fmt::Debug for MapWithIndex<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapWithIndex").field("parent", &self.parent).finish_non_exhaustive()
    }
}

/// See [`MapDataset::try_map_with_index`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct TryMapWithIndex<D, F> {
    parent: D,
    f: F,
    len: u64,
    around: Around,
    stage: StageId,
}

impl<D: MapDataset, F> TryMapWithIndex<D, F> {
    pub(super) fn new(parent: D, f: F) -> Self {
        let stage = stage_after(&[&parent]);
        Self { len: parent.len(), parent, f, around: |calls| calls(), stage }
    }

    /// The same, with the calls for a chunk of elements made inside of `around`.
    #[cfg(feature = "python")]
    pub(crate) fn around(self, around: Around) -> Self {
        Self { around, ..self }
    }
}

impl<D: Stage, F> Stage for TryMapWithIndex<D, F> {
    fn name(&self) -> &'static str {
        "map_with_index"
    }
    fn role(&self) -> Role {
        Role::Elementwise
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, U, F> MapDataset for TryMapWithIndex<D, F>
where
    D: MapDataset,
    F: Fn(ElementIndex, D::Item) -> Result<U> + Send + Sync,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        match cx.timed(self.stage, || (self.f)(ElementIndex::new(index, self.len), element)) {
            Ok(mapped) => Ok(Some(mapped)),
            Err(error) => Err(cx.blame(self.stage, "map_with_index", error)),
        }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let many = self.parent.get_many(indices, cx);
        let blame = cx.blamer(self.stage, "map_with_index");
        let apply = |place: usize, element| {
            (self.f)(ElementIndex::new(indices[place], self.len), element).map(Some).map_err(blame)
        };
        cx.timed_many(self.stage, many.items().len(), || many.filter_map_in(self.around, apply))
    }
}

impl<D: fmt::Debug, F> fmt::Debug for TryMapWithIndex<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryMapWithIndex").field("parent", &self.parent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::error::Error;

    #[test]
    fn the_index_goes_on_over_the_epochs() {
        let ds = Range::new(10, 13).map_with_index(|i, x| (i, x));
        let (index, x) = ds.get(7, &mut Cx::default()).unwrap().unwrap();
        assert_eq!((index, x), (ElementIndex { global: 7, epoch: 2, in_epoch: 1 }, 11));
        // Behind `repeat` all of it is one epoch, as in Grain.
        let ds = Range::new(10, 13).repeat(3).map_with_index(|i, _| (i.global, i.epoch));
        assert_eq!(ds.collect().unwrap()[7], (7, 0));
    }

    #[test]
    fn dropped_slots_keep_their_index() {
        let ds = Range::new(0, 6).filter(|x| x % 2 == 1).map_with_index(|i, _| i.in_epoch);
        assert_eq!(ds.collect().unwrap(), [1, 3, 5]);
    }

    #[test]
    fn a_function_may_fail() {
        let ds = Range::new(0, 3).try_map_with_index(|i, x| if i.global == 4 { Err(Error::data("no")) } else { Ok(x) });
        assert_eq!(ds.collect().unwrap(), [0, 1, 2]);
        assert_eq!(ds.get(4, &mut Cx::default()).unwrap_err().to_string(), "stage 1 map_with_index: no");
    }
}
