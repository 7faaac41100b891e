use super::{GetStacked, Many, MapDataset};
use crate::cx::Cx;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;

/// See [`MapDataset::seed`]; the stream's `seed` is the same node.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Seed<D> {
    pub(in crate::dataset) parent: D,
    seed: u32,
}

impl<D> Seed<D> {
    pub(in crate::dataset) fn new(parent: D, seed: u32) -> Self {
        Self { parent, seed }
    }
}

impl<D: Stage> Stage for Seed<D> {
    fn name(&self) -> &'static str {
        "seed"
    }
    fn params(&self) -> String {
        self.seed.to_string()
    }
    fn role(&self) -> Role {
        Role::Order
    }
    fn is_native(&self) -> bool {
        true
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
    fn will_read(&self, next: Upcoming<'_>) {
        self.parent.will_read(next);
    }
    fn seed_root(&self) -> Option<u32> {
        Some(self.seed)
    }
}

impl<D: MapDataset> MapDataset for Seed<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        self.parent.get(index, cx)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<D::Item> {
        self.parent.get_many(indices, cx)
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<D::Item>
    where
        D::Item: Stack,
    {
        self.parent.get_stacked(indices, cx)
    }

    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.parent.get_ragged(indices, names, cx)
    }
}
