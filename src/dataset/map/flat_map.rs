use super::lanes::Lanes;
use super::{Each, MapDataset, MapFn, TryMapFn};
use crate::cx::{Cx, StageId};
use crate::dataset::INFINITE;
use crate::dataset::memory::{Held, Memory};
use crate::dataset::node::{Describe, Indices, Moves, Node};
use crate::dataset::run::opaque::debug_with_parent;
use crate::dataset::run::upcoming::Upcoming;
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};

/// See [`MapDatasetExt::flat_map`](super::MapDatasetExt::flat_map).
pub type FlatMap<D, F, U> = FannedOut<D, MapFn<F>, U>;

/// See [`MapDatasetExt::try_flat_map`](super::MapDatasetExt::try_flat_map).
pub type TryFlatMap<D, F, U> = FannedOut<D, TryMapFn<F>, U>;

/// Maximum fan-out. Readers visit every slot, including the empty slots.
const MOST_FAN_OUT: usize = 1 << 20;

/// The pieces `U` that the function `E` makes of each element of `D`, in `max_fan_out` slots per element.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct FannedOut<D, E, U> {
    parent: D,
    each: E,
    max_fan_out: usize,
    open: Lanes<Open<U>>,
    stage: StageId,
}

/// The pieces of one element that were not yet returned.
struct Open<U> {
    element: u64,
    pieces: Vec<Option<U>>,
}

impl<U> Open<U> {
    /// Takes the content of `slot`: a piece, or nothing. Returns `None` if the piece was already taken.
    fn take(&mut self, slot: usize) -> Option<Option<U>> {
        if let Some(piece) = self.pieces.get_mut(slot) { piece.take().map(Some) } else { Some(None) }
    }
}

impl<D: MapDataset, E, U> FannedOut<D, E, U> {
    pub(super) fn new(parent: D, max_fan_out: usize, each: E) -> Self {
        Self { stage: stage_after(&[&parent]), parent, each, max_fan_out, open: Lanes::new() }
    }

    fn known(&self, element: u64, slot: usize) -> Option<Option<U>> {
        let mut lane = self.open.mine()?;
        lane.as_mut().filter(|open| open.element == element)?.take(slot)
    }

    /// Returns all pieces of an element; none if the element was dropped.
    fn pieces(&self, element: u64, cx: &mut Cx) -> Result<Vec<Option<U>>>
    where
        E: Each<D::Item, Out: IntoIterator<Item = U>>,
    {
        let Some(whole) = self.parent.get(element, cx)? else { return Ok(Vec::new()) };
        // One piece above the limit is enough to detect the error.
        let enough = self.max_fan_out.saturating_add(1);
        let made = || Ok(self.each.apply(element, whole)?.into_iter().flatten().take(enough).map(Some).collect());
        let pieces = cx.consumed(self.stage, made).and_then(|pieces: Vec<_>| {
            if pieces.len() > self.max_fan_out { Err(too_many(self.max_fan_out)) } else { Ok(pieces) }
        });
        pieces.map_err(|e| cx.blame(self.stage, "flat_map", e))
    }
}

impl<D, E, U> Describe for FannedOut<D, E, U> {
    fn params(&self) -> String {
        format!("max_fan_out={}", self.max_fan_out)
    }
    fn check(&self) -> Result<()> {
        if (1..=MOST_FAN_OUT).contains(&self.max_fan_out) {
            return Ok(());
        }
        let text = format!("max_fan_out is {}, and must be 1 to {MOST_FAN_OUT}", self.max_fan_out);
        Err(Error::config(text).help("`flat_map` after `to_iter` has no limit"))
    }
}

impl<D: MapDataset, E, U> Moves for FannedOut<D, E, U> {
    fn looks_ahead(&self, parents: Option<u64>) -> Option<u64> {
        Some(parents?.saturating_mul(self.max_fan_out as u64))
    }
    fn will_read(&self, next: Upcoming<'_>) {
        let element = |index: &u64| index.checked_div(self.max_fan_out as u64);
        let mut elements: Vec<u64> = next.indices().iter().filter_map(element).collect();
        elements.dedup();
        (&self.parent as &dyn Stage).will_read(next.at(&elements));
    }
}

#[cold]
fn too_many(max_fan_out: usize) -> Error {
    Error::data(format!("an element became more than max_fan_out = {max_fan_out} elements"))
        .help("raise max_fan_out, or use `flat_map` after `to_iter`, which has no limit")
}

impl<D: MapDataset, E, U> Stage for FannedOut<D, E, U> {
    fn node(&self) -> Node<'_> {
        let memory = Some(Memory::elements(Held::NONE, Held::AtMost(self.max_fan_out as u64)).per_thread());
        Node { describe: self, indices: Indices::Moved(self), memory, ..Node::new("flat_map", Role::FanOut) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

debug_with_parent!(FannedOut<D, E, U>);

impl<D, E, U> MapDataset for FannedOut<D, E, U>
where
    D: MapDataset,
    E: Each<D::Item, Out: IntoIterator<Item = U>>,
    U: Send,
{
    type Item = U;

    fn len(&self) -> u64 {
        self.parent.len().saturating_mul(self.max_fan_out as u64).min(INFINITE)
    }

    /// Returns the piece in slot `index`. If slots are read in order, the function runs once per element: the remaining
    /// pieces wait in the thread's lane.
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        let fan_out = self.max_fan_out as u64;
        let Some(element) = index.checked_div(fan_out) else { return Ok(None) };
        let slot = (index % fan_out) as usize;
        let piece = if let Some(piece) = self.known(element, slot) {
            piece
        } else {
            let mut open = Open { element, pieces: self.pieces(element, cx)? };
            let piece = open.take(slot).flatten();
            if let Some(mut lane) = self.open.mine() {
                *lane = Some(open);
            }
            piece
        };
        if piece.is_some() {
            cx.produced(self.stage, 1, 0);
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use crate::MapDatasetExt;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::dataset::map::Range;

    /// Maps x to x % 4 elements: 10x, 10x + 1, …
    fn pieces(x: i64) -> impl Iterator<Item = i64> {
        (0..x % 4).map(move |i| 10 * x + i)
    }

    #[test]
    fn every_element_has_its_slots_in_every_epoch() {
        let ds = Range::new(0, 4).flat_map(3, pieces);
        assert_eq!(ds.len(), 12);
        let mut cx = Cx::default();
        let slots: Vec<Option<i64>> = (0..30).map(|i| ds.get(i, &mut cx).unwrap()).collect();
        let epoch = [None, None, None, Some(10), None, None, Some(20), Some(21), None, Some(30), Some(31), Some(32)];
        assert_eq!(slots[..12], epoch);
        assert_eq!(slots[12..24], epoch);
        assert_eq!(slots[24..], epoch[..6]);
        let globals = Range::new(0, 2).map_with_index(|i, _| i.global).flat_map(2, |g| [g, g + 100]);
        assert_eq!(
            (0..6).map(|i| globals.get(i, &mut cx).unwrap().unwrap()).collect::<Vec<_>>(),
            [0, 100, 1, 101, 2, 102]
        );
    }

    #[test]
    fn in_order_the_function_runs_once_for_each_element_and_in_any_order_it_gives_the_same() {
        let runs = AtomicU64::new(0);
        let counted = |x| {
            runs.fetch_add(1, Ordering::Relaxed);
            pieces(x)
        };
        let ds = Range::new(0, 8).filter(|x| x % 5 != 0).flat_map(3, counted);
        let mut cx = Cx::default();
        let forward: Vec<_> = (0..24).map(|i| ds.get(i, &mut cx).unwrap()).collect();
        assert_eq!(runs.load(Ordering::Relaxed), 6);
        for i in [23, 22, 3, 3, 4, 3, 20, 3, 0] {
            assert_eq!(ds.get(i, &mut cx).unwrap(), forward[i as usize]);
        }
        for i in (0..24).rev() {
            assert_eq!(ds.clone().get(i, &mut cx).unwrap(), forward[i as usize]);
        }
    }

    #[test]
    fn threads_do_not_disturb_each_other() {
        let ds = Range::new(0, 400).flat_map(3, pieces);
        let alone = ds.collect().unwrap();
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(|| ds.collect().unwrap())).collect();
            all.into_iter().for_each(|t| assert_eq!(t.join().unwrap(), alone));
        });
    }

    #[test]
    fn more_than_its_slots_is_an_error_of_each() {
        let ds = Range::new(0, 4).flat_map(2, pieces);
        let mut cx = Cx::default();
        assert_eq!(ds.get(5, &mut cx).unwrap(), Some(21));
        for slot in [6, 7] {
            let error = ds.get(slot, &mut cx).unwrap_err();
            assert_eq!(error.to_string(), "stage 1 flat_map: an element became more than max_fan_out = 2 elements");
        }
        // An endless iterator is an error, and is not read to its end.
        assert!(Range::new(0, 4).flat_map(2, std::iter::repeat).get(0, &mut cx).is_err());
        let none = Range::new(0, 4).flat_map(0, pieces);
        assert!(none.node().describe.check().is_err() && none.get(0, &mut cx).unwrap().is_none());
        assert_eq!(Range::new(0, 4).repeat(None).flat_map(5, pieces).len(), INFINITE);
    }

    #[test]
    fn a_function_may_fail() {
        let ds = Range::new(0, 3).try_flat_map(2, |x| if x == 1 { Err(Error::data("no")) } else { Ok(vec![x]) });
        let mut cx = Cx::default();
        assert_eq!(ds.get(0, &mut cx).unwrap(), Some(0));
        assert_eq!(ds.get(3, &mut cx).unwrap_err().to_string(), "stage 1 flat_map: no");
        assert_eq!(ds.get(4, &mut cx).unwrap(), Some(2));
    }
}
