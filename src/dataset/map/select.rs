use std::fmt;

use super::parents::Parents;
use super::{BulkRead, Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::node::{Describe, Indices, Moves, Node};
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged};
use crate::error::{Error, Result};

/// A map from indices to elements of several datasets, for [`Select`].
///
/// Implemented for a length with a function: `(100, |i| ((i % 2) as usize, i / 2))`.
pub trait SelectionMap: Send + Sync {
    /// Returns the number of elements in one epoch.
    fn len(&self) -> u64;

    /// Returns the dataset number of element `index`, and its index in that dataset. A pure function. Indices past
    /// [`len`](Self::len) belong to later epochs, and so may the returned index.
    fn at(&self, index: u64) -> (usize, u64);

    /// Returns text that identifies this map, for the fingerprint of checkpoints.
    fn identity(&self) -> String {
        String::new()
    }

    /// Returns true if an epoch has no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<F: Fn(u64) -> (usize, u64) + Send + Sync> SelectionMap for (u64, F) {
    fn len(&self) -> u64 {
        self.0
    }
    fn at(&self, index: u64) -> (usize, u64) {
        (self.1)(index)
    }
}

/// Elements of several datasets in a custom order: Grain's `select_from_datasets`.
///
/// ```
/// use gristmill::{dataset::map::{Range, Select}, prelude::*};
/// let parts = vec![Range::new(0, 5), Range::new(100, 105)];
/// let ds = Select::new(parts, (6, |i| ((i % 2) as usize, i / 2)));
/// assert_eq!(ds.collect()?, [0, 100, 1, 101, 2, 102]);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// If the map returns a dataset that does not exist, [`get`](MapDataset::get) fails.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Select<D, M> {
    parents: Parents<D>,
    map: M,
}

impl<D: MapDataset, M: SelectionMap> Select<D, M> {
    /// Reads the elements of `datasets` that `map` selects.
    pub fn new(datasets: Vec<D>, map: M) -> Self {
        Self { parents: Parents::new(datasets), map }
    }
}

impl<D: MapDataset, M: SelectionMap> Stage for Select<D, M> {
    fn node(&self) -> Node<'_> {
        Node { describe: self, indices: Indices::Moved(self), ..Node::new("select", Role::Order) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.parents.stages()
    }
}

impl<D: MapDataset, M: SelectionMap> Describe for Select<D, M> {
    fn params(&self) -> String {
        let identity = self.map.identity();
        let separator = if identity.is_empty() { "" } else { ", " };
        format!("{} of {} datasets{separator}{identity}", self.map.len(), self.parents.count())
    }
    fn check(&self) -> Result<()> {
        if self.parents.count() == 0 { Err(Error::config("it selects from 0 datasets")) } else { Ok(()) }
    }
}

impl<D: MapDataset, M: SelectionMap> Moves for Select<D, M> {
    fn will_read(&self, next: Upcoming<'_>) {
        let places: Vec<_> = next.indices().iter().map(|&index| self.map.at(index)).collect();
        self.parents.will_read(&places, next);
    }
}

impl<D: MapDataset, M: SelectionMap> MapDataset for Select<D, M> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.map.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let (which, at) = cx.consumed(self.parents.stage, || self.map.at(index));
        if which >= self.parents.count() {
            return Err(cx.blame(self.parents.stage, "select", no_such_dataset(which, self.parents.count())));
        }
        self.parents.pass(which, at, cx)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        let places = || indices.iter().map(|&index| self.map.at(index)).collect::<Vec<_>>();
        let places = cx.consumed_many(self.parents.stage, indices.len(), places);
        if places.iter().any(|&(which, _)| which >= self.parents.count()) {
            return Many::one_by_one(indices, |index| self.get(index, cx));
        }
        self.parents.pass_many(&places, cx)
    }

    fn bulk(&self) -> Option<&dyn BulkRead<Self::Item>> {
        Some(self)
    }
}

impl<D: MapDataset, M: SelectionMap> BulkRead<D::Item> for Select<D, M> {
    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.parents.get_ragged_records(source, records, names, cx)
    }

    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<D::Item>> {
        self.parents.get_records(source, records, cx)
    }
}

#[cold]
fn no_such_dataset(which: usize, count: usize) -> Error {
    Error::config(format!("the selection map chose dataset {which} of {count}, counted from 0"))
}

impl<D: fmt::Debug, M> fmt::Debug for Select<D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Select").field("parents", &self.parents).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;

    struct Backwards;
    impl SelectionMap for Backwards {
        fn len(&self) -> u64 {
            4
        }
        fn at(&self, index: u64) -> (usize, u64) {
            (1 - (index % 2) as usize, 3 - index % 4)
        }
        fn identity(&self) -> String {
            "backwards".into()
        }
    }

    #[test]
    fn the_map_decides_in_every_epoch() {
        let ds = Select::new(vec![Range::new(0, 4), Range::new(100, 104)], Backwards);
        let mut cx = Cx::default();
        let seen: Vec<i64> = (0..6).map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect();
        assert_eq!(seen, [103, 2, 101, 0, 103, 2]);
        assert_eq!(ds.params(), "4 of 2 datasets, backwards");
    }

    #[test]
    fn a_dataset_that_is_not_there_is_an_error() {
        let ds = Select::new(vec![Range::new(0, 4)], (3, |i| (i as usize, 0)));
        assert_eq!(ds.get(0, &mut Cx::default()).unwrap(), Some(0));
        let error = ds.get(1, &mut Cx::default()).unwrap_err();
        assert_eq!(error.to_string(), "stage 1 select: the selection map chose dataset 1 of 1, counted from 0");
        assert!(Select::new(Vec::<Range>::new(), (3, |_| (0, 0))).check().is_err());
    }
}
