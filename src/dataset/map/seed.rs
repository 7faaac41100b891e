use std::borrow::Cow;

use super::order::{Order, Ordered};
use crate::dataset::blocks::Blocks;
use crate::dataset::entry::prelude::*;
use crate::dataset::iter::{IterDataset, same_stream};
use crate::dataset::stage::Stage;
use crate::error::Result;

/// See [`MapDatasetExt::seed`](super::MapDatasetExt::seed). The `seed` of streams is this stage, too.
pub type Seed<D> = Ordered<D, SeedOrder>;

/// The order of [`Seed`]. Keeps the order of its parent, and sets the seed of later stages.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SeedOrder(pub(in crate::dataset) u32);

impl Order for SeedOrder {
    const IS_NATIVE: bool = true;
    const IS_WORK: bool = false;

    facts! { name: "seed" }

    fn params(&self) -> String {
        self.0.to_string()
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        Ok(Some(index))
    }
    fn places<'a>(&self, indices: &'a [u64]) -> Option<Cow<'a, [u64]>> {
        Some(indices.into())
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        Ok(Some(place))
    }
    fn blocks(&self, parent: &dyn Stage) -> Option<Blocks> {
        parent.blocks()
    }
    fn seed_root(&self) -> Option<u32> {
        Some(self.0)
    }
}

same_stream!(Seed, parent);

arguments! {
    struct SeedArgs(seed) {
        /// Seed, from 0 to 2^32 - 1.
        seed: u32,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::both(
    "seed",
    "Sets the seed from which later random stages without a `seed` argument derive their seeds.\n\n\
     ConfigError: The seed is not from 0 to 2^32 - 1.",
    &Behind(|ds: BoxMap<Element>, SeedArgs { seed }: SeedArgs, _| Ok(ds.seed(seed).boxed())),
    &Behind(|ds: BoxIter<Element>, SeedArgs { seed }: SeedArgs, _| Ok(ds.seed(seed).boxed())),
);
