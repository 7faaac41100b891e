//! Boxes and shared pointers to datasets are datasets.

use std::sync::Arc;

use super::{GetStacked, Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::Sample;
use crate::dataset::stage::{Stage, same_stage};
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;

macro_rules! forward_map_dataset {
    ($pointer:ty) => {
        impl<D: Stage + ?Sized> Stage for $pointer {
            same_stage!(.as_ref());

            fn sample(&self) -> Option<Sample> {
                (**self).sample()
            }
        }

        impl<D: MapDataset + ?Sized> MapDataset for $pointer {
            type Item = D::Item;
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
                (**self).get(index, cx)
            }
            fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
                (**self).get_many(indices, cx)
            }
            fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<D::Item>
            where
                D::Item: Stack,
            {
                (**self).get_stacked(indices, cx)
            }
            fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
                (**self).get_ragged(indices, names, cx)
            }
        }
    };
}
forward_map_dataset!(Arc<D>);
forward_map_dataset!(Box<D>);
