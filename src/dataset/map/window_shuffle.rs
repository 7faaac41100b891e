use super::lanes::Lanes;
use super::order::{Order, Ordered};
use super::{MapDataset, epochs};
use crate::dataset::entry::prelude::*;
use crate::dataset::memory::Memory;
use crate::dataset::seeds::StageSeed;
use crate::error::{Error, Result};
use crate::rng::IndexShuffle;

/// See [`MapDatasetExt::window_shuffle`](super::MapDatasetExt::window_shuffle).
pub type WindowShuffle<D> = Ordered<D, WindowOrder>;

/// The order of [`WindowShuffle`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct WindowOrder {
    window_size: u64,
    seed: StageSeed,
    len: u64,
    /// The order of each thread's current window.
    open: Lanes<Window>,
}

#[derive(Debug)]
struct Window {
    number: u64,
    order: IndexShuffle,
}

/// Bounds of a window within its epoch, and its number over all epochs.
struct Bounds {
    start: u64,
    size: u64,
    number: u64,
}

impl Bounds {
    fn order(&self, seed: u32) -> IndexShuffle {
        IndexShuffle::four_rounds(self.size - 1, seed.wrapping_add(self.number as u32))
    }
}

impl WindowOrder {
    pub(super) fn new(parent: &impl MapDataset, window_size: u64, seed: Option<u32>) -> Self {
        let seed = StageSeed::resolve(seed, &[parent]);
        Self { window_size, seed, len: parent.len(), open: Lanes::new() }
    }

    /// Returns the window of element `k` of `epoch`; `None` if windows have no elements.
    #[inline]
    fn window(&self, epoch: u64, k: u64) -> Option<Bounds> {
        let window = k.checked_div(self.window_size)?;
        let start = window * self.window_size;
        // Wrapping is harmless: only the low 32 bits are used.
        let number = epoch.wrapping_mul(self.len.div_ceil(self.window_size)).wrapping_add(window);
        Some(Bounds { start, size: self.window_size.min(self.len - start), number })
    }

    /// Permutes an offset within `window`.
    #[inline]
    fn permute(&self, window: &Bounds, offset: u64, seed: u32) -> u64 {
        let Some(mut lane) = self.open.mine() else { return window.order(seed).get(offset) };
        match &*lane {
            Some(open) if open.number == window.number => open.order.get(offset),
            _ => lane.insert(Window { number: window.number, order: window.order(seed) }).order.get(offset),
        }
    }

    /// Maps an index within its window with `permute`.
    #[inline]
    fn moved(&self, index: u64, permute: impl FnOnce(&Bounds, u64, u32) -> u64) -> Result<Option<u64>> {
        let seed = self.seed.get()?;
        let Some((epoch, k)) = epochs::split(index, self.len) else { return Ok(None) };
        let Some(window) = self.window(epoch, k) else { return Ok(None) };
        epochs::join(epoch, self.len, window.start + permute(&window, k - window.start, seed)).map(Some)
    }
}

impl Order for WindowOrder {
    const IS_NATIVE: bool = true;

    facts! { name: "window_shuffle" }

    fn params(&self) -> String {
        format!("{}, {}", self.window_size, self.seed)
    }
    #[inline]
    fn place(&self, index: u64) -> Result<Option<u64>> {
        self.moved(index, |window, offset, seed| self.permute(window, offset, seed))
    }
    fn inverse(&self, place: u64) -> Result<Option<u64>> {
        self.moved(place, |window, offset, seed| window.order(seed).index_of(offset))
    }
    fn lower(&self, place: u64) -> Option<u64> {
        epochs::start(place, self.len)
    }
    fn memory(&self) -> Option<Memory> {
        let size = self.window_size.min(self.len);
        let order = if size <= IndexShuffle::MOST_IN_TABLE { size_of::<u16>() as u64 * size } else { 0 };
        Some(Memory::bytes(order).per_thread())
    }
    fn check(&self) -> Result<()> {
        if self.window_size == 0 {
            return Err(Error::config("the window is 0 elements, and must be 1 or more"));
        }
        self.seed.get().map(drop)
    }
}

arguments! {
    struct WindowShuffleArgs(window_size) {
        /// Number of elements in a window. A stream holds a window in memory.
        window_size: Positive<usize>,
        /// Seed, from 0 to 2^32 - 1. By default, it is derived from the `seed` before the stage.
        seed: Option<u32>,
    }
}

pub(super) const ENTRY: StageEntry = StageEntry::both(
    "window_shuffle",
    "Shuffles the elements within each window. The order of the windows does not change.\n\n\
     A stream holds a window in memory, and reads the window again after a resume.\n\n\
     ConfigError: The window is empty, or there is no seed, neither here nor in a `seed` before the stage.",
    &Behind(|ds: BoxMap<Element>, WindowShuffleArgs { window_size: Positive(size), seed }: WindowShuffleArgs, _| {
        Ok(ds.window_shuffle(size as u64, seed).boxed())
    }),
    &Behind(|ds: BoxIter<Element>, WindowShuffleArgs { window_size: Positive(size), seed }: WindowShuffleArgs, _| {
        Ok(ds.window_shuffle(size, seed).boxed())
    }),
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MapDatasetExt;
    use crate::cx::Cx;
    use crate::dataset::map::Range;
    use crate::dataset::{INFINITE, Stage};

    fn globals(len: i64, window: u64, seed: u32, indices: std::ops::Range<u64>) -> Vec<u64> {
        let ds = Range::new(0, len).map_with_index(|i, _| i.global).window_shuffle(window, seed);
        let mut cx = Cx::default();
        indices.map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect()
    }

    #[test]
    fn windows_are_shuffled_as_in_grain_and_numbered_through_the_epochs() {
        assert_eq!(globals(12, 3, 42, 0..12), [0, 1, 2, 5, 3, 4, 6, 7, 8, 11, 9, 10]);
        // With 6 elements, epoch 1 contains windows 2 and 3, like a dataset of 12 elements.
        assert_eq!(globals(6, 3, 42, 0..12), globals(12, 3, 42, 0..12));
    }

    #[test]
    fn the_last_window_of_each_epoch_is_as_long_as_what_is_left() {
        for len in 1..20 {
            for window in 1..8 {
                for epoch in 0..3 {
                    let range = epoch * len as u64..(epoch + 1) * len as u64;
                    let order = globals(len, window, 5, range.clone());
                    for (chunk, expected) in
                        order.chunks(window as usize).zip(range.collect::<Vec<_>>().chunks(window as usize))
                    {
                        let mut sorted = chunk.to_vec();
                        sorted.sort_unstable();
                        assert_eq!(sorted, expected, "len {len} window {window}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_window_beyond_the_end_is_a_shuffle_of_the_epoch() {
        let whole = Range::new(0, 10).shuffle(42).collect().unwrap();
        assert_eq!(Range::new(0, 10).window_shuffle(u64::MAX, 42).collect().unwrap(), whole);
    }

    #[test]
    fn any_thread_in_any_order_reads_the_same() {
        let ds = Range::new(0, 500).window_shuffle(37, 3);
        let order = ds.collect().unwrap();
        std::thread::scope(|scope| {
            for start in 0..3 {
                let (ds, order) = (&ds, &order);
                scope.spawn(move || {
                    let mut cx = Cx::default();
                    for i in (0..500).rev().map(|i| (i * 7 + start) % 500) {
                        assert_eq!(ds.get(i, &mut cx).unwrap(), Some(order[i as usize]));
                    }
                });
            }
        });
    }

    #[test]
    fn edges() {
        let mut cx = Cx::default();
        assert_eq!(Range::new(0, 0).window_shuffle(3, 1).get(0, &mut cx).unwrap(), None);
        let forever = Range::new(0, 5).repeat(None).window_shuffle(4, 1);
        assert_eq!(forever.len(), INFINITE);
        assert!(forever.get(INFINITE - 1, &mut cx).unwrap().is_some());
        let zero = Range::new(0, 3).window_shuffle(0, 1);
        assert!(zero.node().describe.check().is_err() && zero.get(0, &mut cx).unwrap().is_none());
        assert!(Range::new(0, 3).window_shuffle(2, None).node().describe.check().is_err());
        assert_eq!(Range::new(0, 3).window_shuffle(2, 9).node().describe.params(), "2, seed=9");
    }
}
