use super::each::{IterMapped, IterMappedIter};
use crate::dataset::map::{MapFn, TryMapFn};

/// See [`IterDataset::map`](super::IterDataset::map).
pub type IterMap<D, F> = IterMapped<D, MapFn<F>, ()>;

/// A pass over [`IterMap`].
pub type IterMapIter<I, F> = IterMappedIter<I, MapFn<F>, ()>;

/// See [`IterDataset::try_map`](super::IterDataset::try_map).
pub type IterTryMap<D, F> = IterMapped<D, TryMapFn<F>, ()>;

/// A pass over [`IterTryMap`].
pub type IterTryMapIter<I, F> = IterMappedIter<I, TryMapFn<F>, ()>;
