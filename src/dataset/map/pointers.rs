//! Boxes and shared pointers to datasets are datasets.

use std::sync::Arc;

use super::{Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::stage::{Role, Stage};
use crate::dataset::{Memory, Sample};
use crate::error::Result;

macro_rules! forward_map_dataset {
    ($pointer:ty) => {
        impl<D: Stage + ?Sized> Stage for $pointer {
            fn name(&self) -> &'static str {
                (**self).name()
            }
            fn params(&self) -> String {
                (**self).params()
            }
            fn role(&self) -> Role {
                (**self).role()
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                (**self).parents()
            }
            fn seed_root(&self) -> Option<u32> {
                (**self).seed_root()
            }
            fn is_border(&self) -> bool {
                (**self).is_border()
            }
            fn is_native(&self) -> bool {
                (**self).is_native()
            }
            fn reads_together(&self) -> bool {
                (**self).reads_together()
            }
            fn has_every_index(&self) -> bool {
                (**self).has_every_index()
            }
            fn memory(&self) -> Option<Memory> {
                (**self).memory()
            }
            fn sample(&self) -> Option<Sample> {
                (**self).sample()
            }
            fn remark(&self) -> Option<String> {
                (**self).remark()
            }
            fn check(&self) -> Result<()> {
                (**self).check()
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
        }
    };
}
forward_map_dataset!(Arc<D>);
forward_map_dataset!(Box<D>);
