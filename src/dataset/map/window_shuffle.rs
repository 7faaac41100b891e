use super::lanes::Lanes;
use super::order::{self, through_places};
use super::{MapDataset, epochs};
use crate::cx::{Cx, StageId};
use crate::dataset::memory::Memory;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage, StageSeed, stage_after};
use crate::error::{Error, Result};
use crate::rng::IndexShuffle;

/// See [`MapDataset::window_shuffle`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct WindowShuffle<D> {
    parent: D,
    window_size: u64,
    seed: StageSeed,
    len: u64,
    /// The order of the window that a thread reads.
    open: Lanes<Window>,
    stage: StageId,
}

#[derive(Debug)]
struct Window {
    number: u64,
    order: IndexShuffle,
}

impl<D: MapDataset> WindowShuffle<D> {
    pub(super) fn new(parent: D, window_size: u64, seed: Option<u32>) -> Self {
        let seed = StageSeed::resolve(seed, &[&parent]);
        let (stage, len) = (stage_after(&[&parent]), parent.len());
        Self { parent, window_size, seed, len, open: Lanes::new(), stage }
    }

    /// Where element `k` of `epoch` is read in that epoch.
    fn place(&self, epoch: u64, k: u64, seed: u32) -> u64 {
        let window = k / self.window_size;
        let start = window * self.window_size;
        let size = self.window_size.min(self.len - start);
        // Windows are numbered through all epochs. The number may wrap: only its low half is used.
        let number = epoch.wrapping_mul(self.len.div_ceil(self.window_size)).wrapping_add(window);
        let order = || IndexShuffle::four_rounds(size - 1, seed.wrapping_add(number as u32));
        let Some(mut lane) = self.open.mine() else { return start + order().get(k - start) };
        if lane.as_ref().is_none_or(|open| open.number != number) {
            *lane = Some(Window { number, order: order() });
        }
        start + lane.as_ref().map_or(k - start, |open| open.order.get(k - start))
    }

    /// Where `indices` are found, if all are.
    fn places(&self, indices: &[u64]) -> Option<Vec<u64>> {
        let seed = self.seed.get().ok().filter(|_| self.window_size > 0)?;
        order::places(indices, |index| {
            let (epoch, k) = epochs::split(index, self.len)?;
            epochs::join(epoch, self.len, self.place(epoch, k, seed)).ok()
        })
    }
}

impl<D: MapDataset> Stage for WindowShuffle<D> {
    fn name(&self) -> &'static str {
        "window_shuffle"
    }
    fn params(&self) -> String {
        format!("{}, {}", self.window_size, self.seed)
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
    fn memory(&self) -> Option<Memory> {
        let size = self.window_size.min(self.len);
        let order = if size <= IndexShuffle::MOST_IN_TABLE { size_of::<u16>() as u64 * size } else { 0 };
        Some(Memory::bytes(order).per_thread())
    }
    fn will_read(&self, next: Upcoming<'_>) {
        if let Some(places) = self.places(next.indices()) {
            self.parent.will_read(next.at(&places));
        }
    }
    fn check(&self) -> Result<()> {
        if self.window_size == 0 {
            return Err(Error::config("a window of 0 elements, and it must be 1 or more"));
        }
        self.seed.get().map(drop)
    }
}

impl<D: MapDataset> MapDataset for WindowShuffle<D> {
    type Item = D::Item;

    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<D::Item>> {
        let seed = self.seed.get().map_err(|e| cx.blame(self.stage, "window_shuffle", e))?;
        let Some((epoch, k)) = epochs::split(index, self.len) else { return Ok(None) };
        if self.window_size == 0 {
            return Ok(None);
        }
        let at = cx.consumed(self.stage, || self.place(epoch, k, seed));
        let element = self.parent.get(epochs::join(epoch, self.len, at)?, cx)?;
        if element.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(element)
    }

    through_places!(timed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::INFINITE;
    use crate::dataset::map::Range;

    fn globals(len: i64, window: u64, seed: u32, indices: std::ops::Range<u64>) -> Vec<u64> {
        let ds = Range::new(0, len).map_with_index(|i, _| i.global).window_shuffle(window, seed);
        let mut cx = Cx::default();
        indices.map(|i| ds.get(i, &mut cx).unwrap().unwrap()).collect()
    }

    #[test]
    fn windows_are_shuffled_as_in_grain_and_numbered_through_the_epochs() {
        assert_eq!(globals(12, 3, 42, 0..12), [0, 1, 2, 5, 3, 4, 6, 7, 8, 11, 9, 10]);
        // Epoch 1 of 6 elements is windows 2 and 3, as if there were 12 elements.
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
        assert!(zero.check().is_err() && zero.get(0, &mut cx).unwrap().is_none());
        assert!(Range::new(0, 3).window_shuffle(2, None).check().is_err());
        assert_eq!(Range::new(0, 3).window_shuffle(2, 9).params(), "2, seed=9");
    }
}
