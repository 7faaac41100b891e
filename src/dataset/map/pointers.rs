//! Datasets behind boxes and shared pointers.

use std::sync::Arc;

use super::MapDataset;
use crate::dataset::stage::{Stage, same_stage};

/// Forwards the methods of [`MapDataset`] to an inner dataset.
macro_rules! same_dataset {
    ($($inner:tt)+) => {
        fn len(&self) -> u64 {
            self$($inner)+.len()
        }
        fn get(&self, index: u64, cx: &mut $crate::cx::Cx) -> $crate::error::Result<Option<Self::Item>> {
            self$($inner)+.get(index, cx)
        }
        fn get_many(&self, indices: &[u64], cx: &mut $crate::cx::Cx) -> $crate::element::Many<Self::Item> {
            self$($inner)+.get_many(indices, cx)
        }
        fn bulk(&self) -> Option<&dyn $crate::dataset::map::BulkRead<Self::Item>> {
            self$($inner)+.bulk()
        }
    };
}
pub(in crate::dataset) use same_dataset;

macro_rules! forward_map_dataset {
    ($pointer:ty) => {
        impl<D: Stage + ?Sized> Stage for $pointer {
            same_stage!(.as_ref());
        }

        impl<D: MapDataset + ?Sized> MapDataset for $pointer {
            type Item = D::Item;

            same_dataset!(.as_ref());
        }
    };
}
forward_map_dataset!(Arc<D>);
forward_map_dataset!(Box<D>);
