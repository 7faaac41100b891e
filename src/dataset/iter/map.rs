use super::each::IterMapped;
use crate::dataset::map::{MapFn, TryMapFn};

/// See [`IterDatasetExt::map`](super::IterDatasetExt::map).
pub type IterMap<D, F> = IterMapped<D, MapFn<F>, ()>;

/// See [`IterDatasetExt::try_map`](super::IterDatasetExt::try_map).
pub type IterTryMap<D, F> = IterMapped<D, TryMapFn<F>, ()>;
