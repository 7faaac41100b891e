use super::MapDataset;
use super::combine::{Combine, Combined};
use super::parents::Parents;
use crate::dataset::run::opaque::debug_name;
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
pub type Select<D, M> = Combined<D, Selection<M>>;

/// The choice of [`Select`].
#[doc(hidden)]
#[derive(Clone)]
pub struct Selection<M> {
    map: M,
    count: usize,
}

impl<D: MapDataset, M: SelectionMap> Select<D, M> {
    /// Reads the elements of `datasets` that `map` selects.
    pub fn new(datasets: Vec<D>, map: M) -> Self {
        Self { combine: Selection { map, count: datasets.len() }, parents: Parents::new(datasets) }
    }
}

impl<M: SelectionMap> Combine for Selection<M> {
    facts! { name: "select" }

    fn params(&self, count: usize) -> String {
        let identity = self.map.identity();
        let separator = if identity.is_empty() { "" } else { ", " };
        format!("{} of {count} datasets{separator}{identity}", self.map.len())
    }
    fn len(&self) -> u64 {
        self.map.len()
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<(usize, u64)>> {
        let (which, at) = self.map.at(index);
        if which < self.count { Ok(Some((which, at))) } else { Err(no_such_dataset(which, self.count)) }
    }
    fn check(&self, lens: &[u64]) -> Result<()> {
        if lens.is_empty() { Err(Error::config("it selects from 0 datasets")) } else { Ok(()) }
    }
}

#[cold]
fn no_such_dataset(which: usize, count: usize) -> Error {
    Error::config(format!("the selection map chose dataset {which} of {count}, counted from 0"))
}

debug_name!(Selection<M>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::Describe;
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
