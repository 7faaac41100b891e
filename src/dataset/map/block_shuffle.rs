use std::sync::Arc;

use super::lanes::Lanes;
use super::order::{Order, Ordered};
use super::{MapDataset, epochs};
use crate::dataset::blocks::Blocks;
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
    /// Sets the block size in elements, and ignores the blocks of the source. For sources without blocks.
    pub fn block_size(mut self, block_size: u64) -> Self {
        self.order = self.order.of_size(block_size);
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

    fn name(&self) -> &'static str {
        "block_shuffle"
    }
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

#[cfg(test)]
mod tests {
    use crate::MapDatasetExt;
    use std::collections::HashSet;

    use super::*;
    use crate::cx::Cx;
    use crate::dataset::Stage;
    use crate::dataset::map::{Concatenate, RandomAccess, Range, Source};

    /// Records in blocks of these lengths, and the number of elements that the source can cache.
    #[derive(Clone)]
    struct Blocked(Vec<u64>, Option<u64>);

    impl RandomAccess for Blocked {
        type Record = u64;
        fn len(&self) -> u64 {
            self.0.iter().sum()
        }
        fn read(&self, index: u64) -> Result<u64> {
            Ok(index)
        }
        fn blocks(&self) -> Option<Blocks> {
            Some(Blocks::of(self.0.clone())?.with_room(self.1))
        }
    }

    fn blocked(lens: &[u64]) -> Source<Blocked> {
        Source::new(Blocked(lens.to_vec(), None))
    }

    const UNEVEN: [u64; 9] = [5, 1, 40, 7, 13, 2, 9, 9, 3];

    fn order(ds: &impl MapDataset<Item = u64>, epoch: u64) -> Vec<u64> {
        let mut cx = Cx::default();
        let start = epoch * ds.len();
        (start..start + ds.len()).map(|index| ds.get(index, &mut cx).unwrap().unwrap()).collect()
    }

    #[test]
    fn each_epoch_has_each_element_once_in_another_order() {
        for window in [1, 2, 3, 8, 9, 100] {
            let ds = blocked(&UNEVEN).block_shuffle(window, 7);
            let epochs: Vec<_> = (0..4).map(|epoch| order(&ds, epoch)).collect();
            for order in &epochs {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.iter().copied().eq(0..UNEVEN.iter().sum()), "window {window}");
            }
            assert_eq!(epochs.iter().collect::<HashSet<_>>().len(), 4, "window {window}");
            assert_eq!(order(&ds, 1), epochs[1]);
            assert_ne!(order(&blocked(&UNEVEN).block_shuffle(window, 8), 0), epochs[0]);
        }
    }

    /// Computes the order naively: without a search and without cached windows.
    fn naive(blocks: &Blocks, window: usize, seed: u64, epoch: u64) -> Vec<u64> {
        let permuted = |len: usize, key: u32| {
            let shuffle = IndexShuffle::new(len as u64 - 1, key, 4).unwrap();
            (0..len as u64).map(move |i| shuffle.get(i) as usize).collect::<Vec<_>>()
        };
        let mut all = Vec::new();
        for (at, window) in permuted(blocks.count(), key(&[seed, epoch])).chunks(window).enumerate() {
            let elements: Vec<u64> = window.iter().flat_map(|&block| blocks.range(block)).collect();
            all.extend(permuted(elements.len(), key(&[seed, epoch, at as u64])).into_iter().map(|i| elements[i]));
        }
        all.into_iter().map(|at| at + epoch * blocks.elements()).collect()
    }

    #[test]
    fn windows_of_blocks_are_those_of_the_order_written_out() {
        let globals = |window, lens: &[u64]| blocked(lens).map_with_index(|i, _| i.global).block_shuffle(window, 9);
        for lens in [&UNEVEN[..], &[100], &[30, 30, 30, 4], &[1; 70]] {
            let blocks = Blocks::of(lens.to_vec()).unwrap();
            for window in [1, 2, 3, 50] {
                for epoch in 0..3 {
                    assert_eq!(order(&globals(window, lens), epoch), naive(&blocks, window, 9, epoch));
                }
            }
        }
    }

    #[test]
    fn the_order_is_what_it_was() {
        assert_eq!(Range::new(0, 12).block_shuffle(2, 42).block_size(3).collect().unwrap(), PINNED);
    }

    const PINNED: [i64; 12] = [5, 1, 2, 4, 3, 0, 11, 10, 9, 7, 8, 6];

    #[test]
    fn an_index_is_found_again() {
        for ds in [blocked(&UNEVEN).block_shuffle(2, 5), blocked(&UNEVEN).block_shuffle(4, 5).block_size(10)] {
            let mut cx = Cx::default();
            for index in 0..3 * ds.len() {
                let record = ds.get(index, &mut cx).unwrap().unwrap();
                assert_eq!(ds.index_of(record + index / ds.len() * ds.len()).unwrap(), index);
            }
        }
        let empty = Range::new(0, 0).block_shuffle(2, 1).block_size(4);
        assert!(empty.node().describe.check().is_ok() && empty.index_of(0).is_err());
        assert_eq!(empty.get(0, &mut Cx::default()).unwrap(), None);
    }

    #[test]
    fn blocks_are_known_behind_stages_that_leave_the_order() {
        let lens = |stage: &dyn Stage| stage.blocks().map(|blocks| blocks.lens().collect::<Vec<_>>());
        let ds = || blocked(&[3, 4, 5]);
        assert_eq!(lens(&ds().seed(1).map(|x| x).filter(|x| x % 2 > 0)), Some(vec![3, 4, 5]));
        assert_eq!(lens(&ds().slice(1..9)), Some(vec![2, 4, 2]));
        assert_eq!(lens(&Concatenate::new(vec![ds(), ds()])), Some(vec![3, 4, 5, 3, 4, 5]));
        for without in [ds().shuffle(1).boxed(), ds().shard(0, 2).boxed(), ds().repeat(2).boxed()] {
            assert_eq!(lens(&without), None);
        }
        assert_eq!(lens(&ds().batch(2)), None);
        assert_eq!(lens(&Range::new(0, 9)), None);
    }

    #[test]
    fn a_window_that_has_no_room_is_refused_with_the_one_that_has() {
        let ds = |room, window| Source::new(Blocked(vec![10; 50], Some(room))).block_shuffle(window, 1);
        assert!(ds(100, 5).node().describe.check().is_ok());
        let error = ds(100, 6).node().describe.check().unwrap_err();
        assert_eq!(
            error.message(),
            "windows of 6 blocks do not fit: two of them are up to 120 elements, and the source caches about 100 decoded elements"
        );
        assert!(error.help_text().unwrap().starts_with("set window_blocks=5 or less"), "{error}");
        assert!(ds(9, 1).node().describe.check().unwrap_err().help_text().unwrap().contains("smaller row groups"));
        // All blocks fit, however large the window is.
        assert!(ds(500, 1000).node().describe.check().is_ok());
    }

    #[test]
    fn it_says_how_well_it_mixes() {
        let text = blocked(&[100; 1000]).block_shuffle(10, 1).node().describe.mixing().unwrap();
        assert!(
            text.starts_with("1 000 blocks of about 100 elements in random order, and the elements of 10 of them"),
            "{text}"
        );
        assert!(text.contains("9.91 % of the time (0.10 % in a shuffle of everything)"), "{text}");
        assert!(text.ends_with("within 1 000 of each other"), "{text}");
    }

    #[test]
    fn what_cannot_be_shuffled_says_why() {
        let message = |stage: &dyn Stage| stage.node().describe.check().unwrap_err().message().to_owned();
        assert_eq!(message(&blocked(&[2]).block_shuffle(0, 1)), "the window is 0 blocks, and must be 1 or more");
        assert_eq!(message(&Range::new(0, 9).block_shuffle(1, 1)), "the blocks of range(0, 9, 1) are unknown");
        assert_eq!(
            message(&Range::new(0, 9).block_shuffle(1, 1).block_size(0)),
            "the block is 0 elements, and must be 1 or more"
        );
        let many = Range::new(0, 1 << 30).block_shuffle(1, 1).block_size(1);
        assert!(message(&many).starts_with("1073741824 blocks, and at most 16777216 can"));
        assert!(many.node().describe.check().unwrap_err().help_text().unwrap().contains("block_size of 64 or more"));
        let forever = Range::new(0, 9).repeat(None).block_shuffle(1, 1).block_size(3);
        assert_eq!(message(&forever), "the shuffled dataset never ends, so its blocks cannot be counted");
        assert_eq!(message(&blocked(&[2]).block_shuffle(1, None)), "a random stage has no seed");
        assert!(Range::new(0, 9).block_shuffle(1, 1).get(0, &mut Cx::default()).is_err());
    }

    #[test]
    fn any_thread_in_any_order_reads_the_same() {
        let ds = blocked(&UNEVEN).block_shuffle(2, 3);
        let expected: Vec<_> = (0..3).flat_map(|epoch| order(&ds, epoch)).collect();
        std::thread::scope(|scope| {
            for start in 0..3 {
                let (ds, expected) = (&ds, &expected);
                scope.spawn(move || {
                    let mut cx = Cx::default();
                    for i in (0..267).rev().map(|i| (i * 7 + start * 89) % 267) {
                        assert_eq!(ds.get(i, &mut cx).unwrap(), Some(expected[i as usize]));
                    }
                });
            }
        });
    }

    #[test]
    fn its_arguments_are_what_shapes_the_data() {
        assert_eq!(blocked(&[2, 3]).block_shuffle(4, 9).node().describe.params(), "4, blocks=2, seed=9");
        assert_eq!(
            blocked(&[2, 3]).block_shuffle(4, 9).block_size(5).node().describe.params(),
            "4, block_size=5, seed=9"
        );
    }
}
