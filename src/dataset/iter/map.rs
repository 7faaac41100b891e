use super::each::{IterMapped, IterMappedIter};
use crate::dataset::map::TryMapFn;

/// See [`IterDataset::map`](super::IterDataset::map).
pub type IterMap<D, F> = IterMapped<D, TryMapFn<F>, ()>;

/// A pass over [`IterMap`].
pub type IterMapIter<I, F> = IterMappedIter<I, TryMapFn<F>, ()>;
