//! Stages of random access that change which element is read when: seed, slice, shard.

use super::chain::Context;
use super::decode::Fields;
use super::entry::StageEntry;
use crate::dataset::{BoxIter, BoxMap, IterDataset, MapDataset};
use crate::element::Element;
use crate::error::Result;

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::both("seed", Some("seed"), seed, seed_iter),
    StageEntry::map("shuffle", Some("seed"), shuffle),
    StageEntry::both("window_shuffle", Some("window_size"), window_shuffle, window_shuffle_iter),
    StageEntry::map("block_shuffle", Some("window_blocks"), block_shuffle),
    StageEntry::map("slice", None, slice),
    StageEntry::map("shard", None, shard),
    StageEntry::map("select_indices", Some("indices"), select_indices),
];

fn seed(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    Ok(ds.seed(fields.required("seed")?).boxed())
}

fn seed_iter(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.seed(fields.required("seed")?).boxed())
}

/// `shuffle: {seed: 42}`; without a seed, that of the last `seed` stage.
fn shuffle(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    Ok(ds.shuffle(fields.optional::<u32>("seed")?).boxed())
}

/// `window_shuffle: {window_size: 1000, seed: 42}`.
fn window_shuffle(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    Ok(ds.window_shuffle(fields.required("window_size")?, fields.optional::<u32>("seed")?).boxed())
}

/// The same on a stream.
fn window_shuffle_iter(ds: BoxIter<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxIter<Element>> {
    Ok(ds.window_shuffle(fields.required("window_size")?, fields.optional::<u32>("seed")?).boxed())
}

/// `block_shuffle: {window_blocks: 16, block_size: 1000, seed: 42}`; without a size, the blocks of the source.
fn block_shuffle(ds: BoxMap<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxMap<Element>> {
    // What stands for files while nothing is opened has more elements than anybody has.
    let least = if context.is_draft { ds.len() >> 20 } else { 0 };
    let shuffled = ds.block_shuffle(fields.required("window_blocks")?, fields.optional::<u32>("seed")?);
    Ok(match fields.optional::<u64>("block_size")? {
        Some(size) if size > 0 => shuffled.block_size(size.max(least)).boxed(),
        Some(none) => shuffled.block_size(none).boxed(),
        None => shuffled.boxed(),
    })
}

/// `slice: {start: 0, stop: 1000, step: 1}`: as Python's `ds[start:stop:step]`.
fn slice(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let start = fields.optional::<i64>("start")?.map_or(Unbounded, Included);
    let stop = fields.optional::<i64>("stop")?.map_or(Unbounded, Excluded);
    Ok(ds.slice_step((start, stop), fields.or("step", 1)?).boxed())
}

/// `shard: {index: 0, count: 4}`.
fn shard(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    Ok(ds.shard(fields.required("index")?, fields.required("count")?).boxed())
}

fn select_indices(ds: BoxMap<Element>, fields: &Fields<'_>, _: &Context) -> Result<BoxMap<Element>> {
    Ok(ds.select_indices(fields.required::<Vec<u64>>("indices")?).boxed())
}
