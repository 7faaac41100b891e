use std::sync::Arc;

use super::lanes::Lanes;
use super::order::{Order, Ordered};
use super::{MapDataset, epochs};
use crate::dataset::blocks::Blocks;
use crate::dataset::entry::prelude::*;
use crate::dataset::memory::Memory;
use crate::dataset::seeds::StageSeed;
use crate::dataset::{INFINITE, Stage, label};
use crate::error::{Error, Result};
use crate::fork::OwnLock;
use crate::rng::{IndexShuffle, SeedSequence};
use crate::units;

/// See [`MapDatasetExt::block_shuffle`](super::MapDatasetExt::block_shuffle).
pub type BlockShuffle<D> = Ordered<D, BlockOrder>;

/// The order of [`BlockShuffle`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct BlockOrder {
    window_blocks: usize,
    /// Elements per block; `None` if the source defines the blocks.
    block_size: Option<u64>,
    seed: StageSeed,
    len: u64,
    blocks: Result<Blocks, Unknown>,
    /// The current window of each thread.
    open: Lanes<Window>,
    /// The order of the blocks in two epochs, because threads may be in two adjacent epochs.
    epochs: Arc<OwnLock<[Option<Arc<Epoch>>; 2]>>,
}

/// Reason for the absence of blocks.
#[derive(Clone, Debug)]
enum Unknown {
    /// The dataset is infinite.
    Endless,
    /// The block size is 0.
    Empty,
    /// The dataset has this many blocks, above the limit.
    TooMany(u64),
    /// The dataset of this label has no blocks.
    Of(String),
}

/// Maximum number of blocks of a dataset. Computing an epoch's order of this many blocks takes a moment.
const MOST_BLOCKS: u64 = 1 << 24;

/// The order of the blocks in one epoch.
#[derive(Debug)]
struct Epoch {
    number: u64,
    order: IndexShuffle,
    /// Number of elements before each window.
    starts: Box<[u64]>,
}

/// The order of the elements in one window of blocks.
#[derive(Debug)]
struct Window {
    epoch: u64,
    /// The range of elements, counted from the start of the epoch.
    start: u64,
    end: u64,
    parts: Box<[Part]>,
    order: IndexShuffle,
}

/// A block in a window.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Number of elements of the window before this block.
    before: u64,
    /// Index of the block's first element in the parent.
    first: u64,
}

impl Window {
    /// Returns the parent's index, within the epoch, for element `k` of the epoch. The window must contain `k`.
    #[inline]
    fn place(&self, k: u64) -> u64 {
        let at = self.order.get(k - self.start);
        let part = self.parts[self.parts.partition_point(|part| part.before <= at) - 1];
        part.first + (at - part.before)
    }
}

impl<D> BlockShuffle<D> {
    /// Sets the block size in elements, and ignores the blocks of the source. For sources without blocks. `None` keeps
    /// the blocks of the source.
    pub fn block_size(mut self, block_size: impl Into<Option<u64>>) -> Self {
        if let Some(size) = block_size.into() {
            self.order = self.order.of_size(size);
        }
        self
    }

    /// Returns the index at which element `index` of the parent comes: the inverse of the order.
    ///
    /// # Errors
    /// Fails like [`check`](crate::dataset::Describe::check); [`ErrorKind::Config`](crate::ErrorKind::Config) past the
    /// last epoch that has indices.
    pub fn index_of(&self, index: u64) -> Result<u64> {
        self.order.check()?;
        let empty = || Error::config(format!("no element {index}: the dataset is empty"));
        self.order.inverse(index)?.ok_or_else(empty)
    }
}

impl BlockOrder {
    pub(super) fn new(parent: &impl MapDataset, window_blocks: usize, seed: Option<u32>) -> Self {
        let (seed, len) = (StageSeed::resolve(seed, &[parent]), parent.len());
        let blocks = match (parent as &dyn Stage).blocks() {
            _ if len >= INFINITE => Err(Unknown::Endless),
            Some(blocks) if blocks.count() as u64 > MOST_BLOCKS => Err(Unknown::TooMany(blocks.count() as u64)),
            Some(blocks) if blocks.elements() == len => Ok(blocks),
            _ => Err(Unknown::Of(label(parent))),
        };
        Self { window_blocks, block_size: None, seed, len, blocks, open: Lanes::new(), epochs: Arc::default() }
    }

    /// Replaces the blocks by blocks of `size` elements each.
    fn of_size(self, size: u64) -> Self {
        let count = self.len.checked_next_multiple_of(size).map_or(0, |len| len / size);
        let blocks = match self.len {
            INFINITE.. => Err(Unknown::Endless),
            _ if count > MOST_BLOCKS => Err(Unknown::TooMany(count)),
            len => Blocks::even(size, len).ok_or(Unknown::Empty),
        };
        Self { block_size: Some(size), blocks, open: Lanes::new(), epochs: Arc::default(), ..self }
    }

    /// Returns the blocks, the seed, the epoch of an index and the index in that epoch; `None` if there are no
    /// elements.
    #[inline]
    fn find(&self, index: u64) -> Result<Option<(&Blocks, u32, u64, u64)>> {
        let seed = self.seed.get()?;
        let Some((epoch, at)) = epochs::split(index, self.len) else { return Ok(None) };
        match &self.blocks {
            Ok(blocks) if self.window_blocks > 0 => Ok(Some((blocks, seed, epoch, at))),
            _ => self.check().map(|()| None),
        }
    }

    /// Returns the parent's index, within the epoch, for element `k` of `epoch`.
    fn place_in(&self, blocks: &Blocks, epoch: u64, k: u64, seed: u32) -> u64 {
        let open = || {
            let windows = &self.epoch(blocks, epoch, seed).starts;
            self.window(blocks, epoch, windows.partition_point(|&start| start <= k) - 1, seed)
        };
        let Some(mut lane) = self.open.mine() else { return open().place(k) };
        match &*lane {
            Some(window) if window.epoch == epoch && (window.start..window.end).contains(&k) => window.place(k),
            _ => lane.insert(open()).place(k),
        }
    }

    /// Returns the order of the blocks in epoch `number`. Caches the orders of two epochs.
    fn epoch(&self, blocks: &Blocks, number: u64, seed: u32) -> Arc<Epoch> {
        let mut kept = self.epochs.lock();
        let slot = &mut kept[(number % 2) as usize];
        match slot {
            Some(epoch) if epoch.number == number => epoch.clone(),
            _ => slot.insert(Arc::new(self.order_of(blocks, number, seed))).clone(),
        }
    }

    fn order_of(&self, blocks: &Blocks, number: u64, seed: u32) -> Epoch {
        let order = IndexShuffle::four_rounds(blocks.count() as u64 - 1, key(&[seed.into(), number]));
        let mut positions: Vec<u64> = (0..blocks.count() as u64).collect();
        order.get_many(&mut positions);
        let mut start = 0;
        let window = |window: &[u64]| {
            let len: u64 = window.iter().map(|&block| blocks.len_of(block as usize)).sum();
            start += len;
            start - len
        };
        let starts = positions.chunks(self.window_blocks).map(window).collect();
        Epoch { number, order, starts }
    }

    /// Returns the order of the elements in window `at` of `epoch`.
    fn window(&self, blocks: &Blocks, epoch: u64, at: usize, seed: u32) -> Window {
        let of_epoch = self.epoch(blocks, epoch, seed);
        let first = at * self.window_blocks;
        let mut before = 0;
        let parts = (first..blocks.count().min(first.saturating_add(self.window_blocks))).map(|position| {
            let block = blocks.range(of_epoch.order.get(position as u64) as usize);
            let part = Part { before, first: block.start };
            before += block.end - block.start;
            part
        });
        let (parts, start) = (parts.collect(), of_epoch.starts[at]);
        let order = IndexShuffle::four_rounds(before - 1, key(&[seed.into(), epoch, at as u64]));
        Window { epoch, start, end: start + before, parts, order }
    }

    /// Checks that the blocks are known and not too many.
    fn check_blocks(&self) -> Result<&Blocks> {
        self.blocks.as_ref().map_err(|unknown| match unknown {
            Unknown::Endless => Error::config("the shuffled dataset never ends, so its blocks cannot be counted")
                .help("shuffle first, then `repeat`: each epoch gets a different order"),
            Unknown::Empty => Error::config("the block is 0 elements, and must be 1 or more"),
            Unknown::TooMany(count) => Error::config(format!(
                "{count} blocks, and at most {MOST_BLOCKS} can be ordered in memory"
            ))
            .help(format!("give it a block_size of {} or more", self.len.div_ceil(MOST_BLOCKS))),
            Unknown::Of(parent) => Error::config(format!("the blocks of {parent} are unknown"))
                .help("give it a block_size in elements, or place it directly after a source that has row groups, chunks or shards"),
        })
    }

    /// Checks that the source can cache two windows: the window being read, and the next window, which is prefetched.
    fn check_room(&self, blocks: &Blocks) -> Result<()> {
        let Some(room) = blocks.room() else { return Ok(()) };
        let mut lens: Vec<u64> = blocks.lens().collect();
        lens.sort_unstable_by(|a, b| b.cmp(a));
        let two_windows = |window: usize| lens.iter().take(window.saturating_mul(2)).sum::<u64>();
        let needed = two_windows(self.window_blocks);
        if needed <= room {
            return Ok(());
        }
        let fits = (0..self.window_blocks).rev().find(|&window| two_windows(window) <= room).unwrap_or(0);
        let help = match fits {
            0 => "raise the source's cache_bytes, or write smaller row groups, chunks or shards".to_owned(),
            fits => format!("set window_blocks={fits} or less, or raise the source's cache_bytes"),
        };
        Err(Error::config(format!(
            "windows of {} blocks do not fit: two of them are up to {} elements, and the source caches about {} decoded elements",
            self.window_blocks,
            units::grouped(needed),
            units::grouped(room)
        ))
        .help(help))
    }
}

/// Derives the seed of an order from `numbers`.
fn key(numbers: &[u64]) -> u32 {
    let [key] = SeedSequence::new(numbers).state_u32();
    key
}

impl Order for BlockOrder {
    const IS_NATIVE: bool = true;

    facts! { name: "block_shuffle" }

    fn params(&self) -> String {
        match (self.block_size, &self.blocks) {
            (Some(size), _) => format!("{}, block_size={size}, {}", self.window_blocks, self.seed),
            (None, Ok(blocks)) => format!("{}, blocks={}, {}", self.window_blocks, blocks.count(), self.seed),
            (None, Err(_)) => format!("{}, {}", self.window_blocks, self.seed),
        }
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        let Some((blocks, seed, epoch, k)) = self.find(index)? else { return Ok(None) };
        epochs::join(epoch, self.len, self.place_in(blocks, epoch, k, seed)).map(Some)
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        let Some((blocks, seed, epoch, at)) = self.find(place)? else { return Ok(None) };
        let block = blocks.find(at);
        let position = self.epoch(blocks, epoch, seed).order.index_of(block as u64) as usize;
        let window = self.window(blocks, epoch, position / self.window_blocks, seed);
        let part = window.parts[position % self.window_blocks];
        let k = window.start + window.order.index_of(part.before + (at - part.first));
        epochs::join(epoch, self.len, k).map(Some)
    }
    fn lower(&self, place: u64) -> Option<u64> {
        epochs::start(place, self.len)
    }
    fn keeps_blocks(&self) -> bool {
        self.block_size.is_none()
    }
    fn memory(&self) -> Option<Memory> {
        let Ok(blocks) = &self.blocks else { return Some(Memory::NOTHING) };
        let mean = self.len / (blocks.count() as u64).max(1);
        let elements = mean.saturating_mul(self.window_blocks as u64).min(self.len);
        let order = if elements <= IndexShuffle::MOST_IN_TABLE { size_of::<u16>() as u64 * elements } else { 0 };
        let parts = size_of::<Part>() as u64 * self.window_blocks.min(blocks.count()) as u64;
        Some(Memory::bytes(order + parts).per_thread())
    }
    fn mixing(&self) -> Option<String> {
        let blocks = self.blocks.as_ref().ok().filter(|blocks| blocks.count() > 0)?;
        let share = |window: u64| {
            let each = self.len as f64 / blocks.count() as f64;
            (each - 1.0).max(0.0) / (each * window as f64 - 1.0).max(1.0) * 100.0
        };
        let (count, window) = (blocks.count() as u64, self.window_blocks.clamp(1, blocks.count()) as u64);
        Some(format!(
            "{} blocks of about {} elements in random order, and the elements of {} of them at a time: neighbours come from the same block \
             {:.2} % of the time ({:.2} % in a shuffle of everything); a block may come anywhere in an epoch, its elements within {} of each other",
            units::grouped(count),
            units::grouped(self.len / count),
            units::grouped(window),
            share(window),
            share(count),
            units::grouped((self.len / count).saturating_mul(window)),
        ))
    }
    fn check(&self) -> Result<()> {
        if self.window_blocks == 0 {
            return Err(Error::config("the window is 0 blocks, and must be 1 or more"));
        }
        self.seed.get()?;
        self.check_room(self.check_blocks()?)
    }
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

pub(crate) const ENTRY: StageEntry = StageEntry::map(
    "block_shuffle",
    "Shuffles the blocks of the source, then the elements within each window of blocks, with another order in every epoch.\n\n\
     The stage is for sources that fetch or decode many records together, such as row groups of Parquet in an object \
     store. Each block is read once per epoch. At most two windows of blocks are in memory.\n\n\
     ConfigError: The window is empty, the blocks are not known, the cache of the source has no room for the window \
     (the message names the largest possible window), or there is no seed, neither here nor in a `seed` before the \
     stage.",
    &Behind(block_shuffle),
);

fn block_shuffle(ds: BoxMap<Element>, args: BlockShuffleArgs, at: &Site<'_>) -> Result<BoxMap<Element>> {
    // A source that is not opened has more elements than any other.
    let least = if at.is_draft { ds.len() >> 20 } else { 0 };
    let BlockShuffleArgs { window_blocks, seed, block_size } = args;
    let block_size = block_size.map(|Positive(size)| if size > 0 { size.max(least) } else { 0 });
    Ok(ds.block_shuffle(window_blocks.0, seed).block_size(block_size).boxed())
}

#[cfg(test)]
mod tests;
