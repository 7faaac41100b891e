use super::each::{IterMapped, IterMappedIter};
use crate::dataset::map::{MapFn, TryMapFn};

/// See [`IterDatasetExt::map`](super::IterDatasetExt::map).
pub type IterMap<D, F> = IterMapped<D, MapFn<F>, ()>;

/// A pass over [`IterMap`].
pub type IterMapIter<I, F> = IterMappedIter<I, MapFn<F>, ()>;

/// See [`IterDatasetExt::try_map`](super::IterDatasetExt::try_map).
pub type IterTryMap<D, F> = IterMapped<D, TryMapFn<F>, ()>;

/// A pass over [`IterTryMap`].
pub type IterTryMapIter<I, F> = IterMappedIter<I, TryMapFn<F>, ()>;
