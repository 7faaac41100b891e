use super::each::{Each, Mapped};
use super::{Many, epochs};
use crate::dataset::facts::Facts;
use crate::dataset::run::opaque::debug_name;
use crate::element::Around;
use crate::error::{Error, Result};

/// Index of an element, passed to the function of [`map_with_index`](super::MapDatasetExt::map_with_index).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementIndex {
    /// The requested index, which continues over epochs.
    pub global: u64,
    /// The epoch, from 0: `global` divided by the length.
    pub epoch: u64,
    /// The index in that epoch.
    pub in_epoch: u64,
}

impl ElementIndex {
    /// Makes the index of an element from `global` and the length. `len` is not 0, because there is an element.
    #[inline]
    fn new(global: u64, len: u64) -> Self {
        let (epoch, in_epoch) = epochs::split(global, len).unwrap_or((0, global));
        Self { global, epoch, in_epoch }
    }
}

/// See [`MapDatasetExt::map_with_index`](super::MapDatasetExt::map_with_index).
pub type MapWithIndex<D, F> = Mapped<D, IndexFn<F>>;

/// See [`MapDatasetExt::try_map_with_index`](super::MapDatasetExt::try_map_with_index).
pub type TryMapWithIndex<D, F> = Mapped<D, TryIndexFn<F>>;

/// The function of [`MapWithIndex`].
#[doc(hidden)]
#[derive(Clone)]
pub struct IndexFn<F> {
    pub(super) f: F,
    pub(super) len: u64,
}

/// The function of [`TryMapWithIndex`].
#[doc(hidden)]
#[derive(Clone)]
pub struct TryIndexFn<F> {
    f: F,
    len: u64,
    around: Around,
}

impl<F> TryIndexFn<F> {
    pub(super) fn new(len: u64, f: F) -> Self {
        Self { f, len, around: |calls| calls() }
    }
}

#[cfg(feature = "python")]
impl<D, F> TryMapWithIndex<D, F> {
    /// Sets `around`, which wraps the calls for each chunk of elements.
    pub(crate) fn around(mut self, around: Around) -> Self {
        self.each.around = around;
        self
    }
}

impl<F: Send + Sync> Facts for IndexFn<F> {
    facts! { name: "map_with_index", sees_index: true }
}

impl<T, U, F: Fn(ElementIndex, T) -> U + Send + Sync> Each<T> for IndexFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    #[inline]
    fn apply(&self, index: u64, element: T) -> Result<Option<U>> {
        Ok(Some((self.f)(ElementIndex::new(index, self.len), element)))
    }

    #[inline]
    fn apply_many(&self, indices: &[u64], many: Many<T>, _: impl Fn(Error) -> Error + Copy) -> Many<U> {
        many.map(|place, element| (self.f)(ElementIndex::new(indices[place], self.len), element))
    }
}

impl<F: Send + Sync> Facts for TryIndexFn<F> {
    facts! { name: "map_with_index", sees_index: true }
}

impl<T, U, F: Fn(ElementIndex, T) -> Result<U> + Send + Sync> Each<T> for TryIndexFn<F> {
    const IS_ONE: bool = true;
    type Out = U;

    #[inline]
    fn apply(&self, index: u64, element: T) -> Result<Option<U>> {
        (self.f)(ElementIndex::new(index, self.len), element).map(Some)
    }

    #[inline]
    fn apply_many(&self, indices: &[u64], many: Many<T>, blame: impl Fn(Error) -> Error + Copy) -> Many<U> {
        many.filter_map_in(self.around, |place, element| self.apply(indices[place], element).map_err(blame))
    }
}

debug_name!(IndexFn<F>);
debug_name!(TryIndexFn<F>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cx;
    use crate::dataset::map::{MapDataset, MapDatasetExt, Range};

    #[test]
    fn the_index_goes_on_over_the_epochs() {
        let ds = Range::new(10, 13).map_with_index(|i, x| (i, x));
        let (index, x) = ds.get(7, &mut Cx::default()).unwrap().unwrap();
        assert_eq!((index, x), (ElementIndex { global: 7, epoch: 2, in_epoch: 1 }, 11));
        // After `repeat`, there is a single epoch, as in Grain.
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
