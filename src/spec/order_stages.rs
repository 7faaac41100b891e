//! Stages of random access that change which element is read when: seed, slice, shard.

use super::arguments::arguments;
use super::build::{Behind, Site};
use super::entry::StageEntry;
use super::values::Positive;
use crate::dataset::map::SplitSizes;
use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDataset, MapDatasetExt};
use crate::element::Element;
use crate::error::Result;

pub(super) const STAGES: &[StageEntry] = &[
    StageEntry::both(
        "seed",
        "Sets the seed from which later random stages without a `seed` argument derive their seeds.\n\n\
         ConfigError: The seed is not from 0 to 2^32 - 1.",
        &Behind(seed),
        &Behind(seed_iter),
    ),
    StageEntry::map(
        "shuffle",
        "Shuffles the elements in constant memory, with another order in every epoch. The order is Grain's.\n\n\
         A slice of a shuffled dataset has other elements in each epoch. For training and validation sets, use `split` \
         before `shuffle`.\n\n\
         ConfigError: There is no seed, neither here nor in a `seed` before the stage.",
        &Behind(shuffle),
    ),
    StageEntry::both(
        "window_shuffle",
        "Shuffles the elements within each window. The order of the windows does not change.\n\n\
         A stream holds a window in memory, and reads the window again after a resume.\n\n\
         ConfigError: The window is empty, or there is no seed, neither here nor in a `seed` before the stage.",
        &Behind(window_shuffle),
        &Behind(window_shuffle_iter),
    ),
    StageEntry::map(
        "block_shuffle",
        "Shuffles the blocks of the source, then the elements within each window of blocks, with another order in every epoch.\n\n\
         The stage is for sources that fetch or decode many records together, such as row groups of Parquet in an object \
         store. Each block is read once per epoch. At most two windows of blocks are in memory.\n\n\
         ConfigError: The window is empty, the blocks are not known, the cache of the source has no room for the window \
         (the message names the largest possible window), or there is no seed, neither here nor in a `seed` before the \
         stage.",
        &Behind(block_shuffle),
    ),
    StageEntry::map("slice", "Takes a slice of the elements, as Python's `ds[start:stop:step]`.", &Behind(slice)),
    StageEntry::map(
        "split",
        "Takes a part of a fixed split, such as a training or validation set. Parts share no elements in any epoch.",
        &Behind(split),
    ),
    StageEntry::map(
        "shard",
        "Takes every `count`-th element from `index` on: the shard of host `index` of `count` hosts.\n\n\
         ConfigError: There is no such shard.",
        &Behind(shard),
    ),
    StageEntry::map(
        "select_indices",
        "Takes the elements at the given indices, in the given order.\n\n\
         ConfigError: An index is past the end.",
        &Behind(select_indices),
    ),
];

arguments! {
    struct SeedArgs(seed) {
        /// Seed, from 0 to 2^32 - 1.
        seed: u32,
    }
}

fn seed(ds: BoxMap<Element>, SeedArgs { seed }: SeedArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.seed(seed).boxed())
}

fn seed_iter(ds: BoxIter<Element>, SeedArgs { seed }: SeedArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.seed(seed).boxed())
}

arguments! {
    struct ShuffleArgs(seed) {
        /// Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.
        seed: Option<u32>,
    }
}

fn shuffle(ds: BoxMap<Element>, ShuffleArgs { seed }: ShuffleArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.shuffle(seed).boxed())
}

arguments! {
    struct WindowShuffleArgs(window_size) {
        /// Number of elements in a window. A stream holds a window in memory.
        window_size: Positive<usize>,
        /// Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.
        seed: Option<u32>,
    }
}

fn window_shuffle(ds: BoxMap<Element>, args: WindowShuffleArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.window_shuffle(args.window_size.0 as u64, args.seed).boxed())
}

/// Shuffles blocks of a stream.
fn window_shuffle_iter(ds: BoxIter<Element>, args: WindowShuffleArgs, _: &Site<'_>) -> Result<BoxIter<Element>> {
    Ok(ds.window_shuffle(args.window_size.0, args.seed).boxed())
}

arguments! {
    struct BlockShuffleArgs(window_blocks) {
        /// Number of blocks in a window. The elements of a window are shuffled together, and at most two windows are in memory.
        window_blocks: Positive<usize>,
        /// Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.
        seed: Option<u32>,
        /// Number of elements in a block. By default, blocks are the row groups of Parquet, record batches of Arrow, chunks of ArrayRecord
        /// or shards of MDS.
        block_size: Option<Positive<u64>>,
    }
}

fn block_shuffle(ds: BoxMap<Element>, args: BlockShuffleArgs, at: &Site<'_>) -> Result<BoxMap<Element>> {
    // A source that is not opened has more elements than any other.
    let least = if at.is_draft { ds.len() >> 20 } else { 0 };
    let BlockShuffleArgs { window_blocks, seed, block_size } = args;
    let shuffled = ds.block_shuffle(window_blocks.0, seed);
    Ok(match block_size {
        Some(Positive(size)) if size > 0 => shuffled.block_size(size.max(least)).boxed(),
        Some(Positive(none)) => shuffled.block_size(none).boxed(),
        None => shuffled.boxed(),
    })
}

arguments! {
    struct SliceArgs {
        /// Index of the first element; a negative index counts from the end. By default, the slice begins at the first element.
        start: Option<i64>,
        /// Index after the last element; a negative index counts from the end. By default, the slice extends to the end.
        stop: Option<i64>,
        /// Step from one index to the next; not 0.
        step: i64 = 1,
    }
}

fn slice(ds: BoxMap<Element>, SliceArgs { start, stop, step }: SliceArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let bounds = (start.map_or(Unbounded, Included), stop.map_or(Unbounded, Excluded));
    Ok(ds.slice_step(bounds, step).boxed())
}

arguments! {
    struct SplitArgs {
        /// Sizes of all parts: fractions below 1, or numbers of elements.
        sizes: Vec<f64>,
        /// Index of the part to take, from 0.
        take: usize,
        /// Seed for drawing the elements of each part, from 0 to 2^32 - 1. The `seed` of the pipeline does not change it.
        seed: u32 = 0,
        /// Whether the elements of each part are drawn at random. If false, parts are consecutive ranges.
        shuffle: bool = true,
    }
}

fn split(ds: BoxMap<Element>, args: SplitArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    let SplitArgs { sizes, take, seed, shuffle } = args;
    Ok(ds.split(&SplitSizes::new(sizes).seed(seed).shuffle(shuffle), take).boxed())
}

arguments! {
    struct ShardArgs {
        /// Index of the shard, from 0.
        index: u64,
        /// Number of shards.
        count: Positive<u64>,
    }
}

fn shard(ds: BoxMap<Element>, ShardArgs { index, count }: ShardArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.shard(index, count.0).boxed())
}

arguments! {
    struct SelectIndicesArgs(indices) {
        /// Indices of elements, from 0. An index may occur several times.
        indices: Vec<u64>,
    }
}

fn select_indices(ds: BoxMap<Element>, args: SelectIndicesArgs, _: &Site<'_>) -> Result<BoxMap<Element>> {
    Ok(ds.select_indices(args.indices).boxed())
}
