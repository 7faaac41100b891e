use serde::{Deserialize, Serialize};

use super::DatasetIterator;
use super::flow::{Flow, Flowing, Start, hands_on};
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::facts::Facts;
use crate::dataset::memory::{Held, Memory};
use crate::dataset::run::opaque::debug_name;
use crate::dataset::seeds::StageSeed;
use crate::dataset::stage::Role;
use crate::error::{Error, Result};
use crate::rng::{DEFAULT_ROUNDS, permutation};

/// See [`IterDatasetExt::window_shuffle`](super::IterDatasetExt::window_shuffle).
pub type IterWindowShuffle<D> = Flowing<D, WindowFlow>;

/// [`Flow`] of [`IterWindowShuffle`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct WindowFlow {
    pub(super) window: usize,
    pub(super) seed: StageSeed,
}

impl Facts for WindowFlow {
    facts! { name: "window_shuffle", role: Role::Stateful }

    fn params(&self) -> String {
        format!("{}, {}", self.window, self.seed)
    }
    fn memory(&self) -> Option<Memory> {
        Some(Memory::elements(Held::AtMost(self.window as u64), Held::NONE))
    }
    fn check(&self) -> Result<()> {
        if self.window == 0 || u32::try_from(self.window).is_err() {
            return Err(Error::config(format!(
                "the window is {} elements, and must be 1 to {}",
                self.window,
                u32::MAX
            )));
        }
        self.seed.get().map(drop)
    }
}

impl<I: DatasetIterator<Item: Send>> Flow<I> for WindowFlow {
    type Pass = IterWindowShuffleIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        let (window, seed, start) = (self.window.max(1), self.seed.get()?, parent.state());
        Ok(IterWindowShuffleIter {
            parent,
            window,
            seed,
            start,
            number: 0,
            given: 0,
            filling: Vec::new(),
            shuffled: Vec::new(),
            members: Members::default(),
            stage,
        })
    }

    hands_on!(elements);
}

/// A pass over [`IterWindowShuffle`].
#[doc(hidden)]
pub struct IterWindowShuffleIter<I: DatasetIterator> {
    parent: I,
    window: usize,
    seed: u32,
    /// The parent's position before the current window.
    start: I::State,
    number: u64,
    /// Yielded elements of the current window.
    given: u64,
    /// Elements of the unfinished window. They stay here after an error of the parent.
    filling: Vec<I::Item>,
    /// Remaining elements of a full window; the next element is last.
    shuffled: Vec<I::Item>,
    /// Tags of the elements in `filling` and `shuffled`, if keys of later stages are recorded.
    members: Members,
    stage: StageId,
}

/// Position of an [`IterWindowShuffleIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowShuffleState<S> {
    /// The parent's position before the current window.
    pub window_start: S,
    /// The number of the window, from 0.
    pub window: u64,
    /// Yielded elements of this window.
    pub position: u64,
}

impl<I: DatasetIterator> IterWindowShuffleIter<I> {
    /// Reads the next window, which may be smaller at the end, and shuffles it.
    fn fill(&mut self, cx: &mut Cx) -> Result<()> {
        if self.filling.is_empty() {
            self.start = self.parent.state();
        }
        while self.filling.len() < self.window {
            if let Some(element) = self.parent.next(cx)? {
                self.filling.push(element);
                self.members.fill(self.filling.len(), cx.element());
            } else {
                break;
            }
        }
        let seed = self.seed.wrapping_add(self.number as u32);
        let window = std::mem::take(&mut self.filling);
        self.members.shuffle(seed).map_err(|e| cx.blame(self.stage, "window_shuffle", e))?;
        let shuffled = cx.timed_exactly(self.stage, || shuffle(window, seed));
        self.shuffled = shuffled.map_err(|e| cx.blame(self.stage, "window_shuffle", e))?;
        Ok(())
    }
}

/// Tags of a window's elements: record, and number within the record. Empty if no element has a tag.
#[derive(Default)]
struct Members {
    filling: Vec<Option<ElementId>>,
    shuffled: Vec<Option<ElementId>>,
}

impl Members {
    /// Adds the tag of the last of `len` elements.
    fn fill(&mut self, len: usize, member: Option<ElementId>) {
        if member.is_some() || !self.filling.is_empty() {
            self.filling.resize(len - 1, None);
            self.filling.push(member);
        }
    }

    /// Shuffles the tags in the same order as their elements.
    fn shuffle(&mut self, seed: u32) -> Result<()> {
        self.shuffled = shuffle(std::mem::take(&mut self.filling), seed)?;
        Ok(())
    }

    fn pop(&mut self) -> Option<ElementId> {
        self.shuffled.pop().flatten()
    }

    fn truncate(&mut self, left: usize) {
        self.shuffled.truncate(left);
    }
}

/// Shuffles a window: place `i` gets the element that `index_shuffle` maps there.
fn shuffle<T>(window: Vec<T>, seed: u32) -> Result<Vec<T>> {
    if window.is_empty() {
        return Ok(window);
    }
    let order = permutation(window.len() as u32, seed, DEFAULT_ROUNDS)?;
    let mut window: Vec<Option<T>> = window.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|i| window[i as usize].take()).collect())
}

impl<I: DatasetIterator<Item: Send>> DatasetIterator for IterWindowShuffleIter<I> {
    type Item = I::Item;
    type State = WindowShuffleState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        if self.shuffled.is_empty() {
            self.fill(cx)?;
        }
        let Some(element) = self.shuffled.pop() else { return Ok(None) };
        cx.set_element(self.members.pop());
        self.given += 1;
        if self.shuffled.is_empty() {
            (self.number, self.given) = (self.number + 1, 0);
            self.start = self.parent.state();
        }
        cx.produced(self.stage, 1, 0);
        Ok(Some(element))
    }

    fn state(&self) -> Self::State {
        WindowShuffleState { window_start: self.start.clone(), window: self.number, position: self.given }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.filling.clear();
        self.shuffled.clear();
        self.members = Members::default();
        self.start = state.window_start.clone();
        (self.number, self.given) = (state.window, state.position);
        self.parent.restore(state.window_start, cx)?;
        if state.position == 0 {
            return Ok(());
        }
        self.fill(cx)?;
        let left = usize::try_from(state.position).ok().and_then(|given| self.shuffled.len().checked_sub(given));
        match left {
            // States of Grain may be after the last element of a window, with the number of the next window.
            Some(0) => {
                self.shuffled.clear();
                self.members = Members::default();
                self.given = 0;
                self.start = self.parent.state();
                Ok(())
            }
            Some(left) => {
                self.shuffled.truncate(left);
                self.members.truncate(left);
                Ok(())
            }
            None => {
                let (position, len) = (state.position, self.shuffled.len());
                let error = Error::state(format!("position {position} in a window that has {len} elements"));
                Err(cx.blame(self.stage, "window_shuffle", error))
            }
        }
    }
}

debug_name!(IterWindowShuffleIter<I: DatasetIterator>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::iter::{IterDataset, IterDatasetExt, StreamState, laws};
    use crate::dataset::map::Range;
    use crate::exec::Runtime;
    use crate::{ErrorKind, MapDatasetExt};

    #[test]
    fn grains_own_example() {
        // From the doc of Grain's WindowShuffleIterDataset.
        let ds = Range::new(0, 12).to_iter().window_shuffle(3, 42);
        assert_eq!(laws::check(&ds), [2, 1, 0, 4, 3, 5, 8, 7, 6, 10, 9, 11]);
    }

    #[test]
    fn every_element_comes_once_within_its_window() {
        let ds = IterDatasetExt::filter(Range::new(0, 100).to_iter(), |x| x % 3 != 0).flat_map(|x| [x, -x]);
        let plain = ds.collect().unwrap();
        let ds = ds.window_shuffle(20, 7);
        let shuffled = laws::check(&ds);
        for (mut a, mut b) in plain.chunks(20).map(<[_]>::to_vec).zip(shuffled.chunks(20).map(<[_]>::to_vec)) {
            assert_ne!(a, b);
            a.sort_unstable();
            b.sort_unstable();
            assert_eq!(a, b);
        }
    }

    #[test]
    fn needs_a_seed_and_a_window() {
        let kind = |ds: IterWindowShuffle<_>| ds.collect().unwrap_err().kind();
        assert_eq!(kind(Range::new(0, 9).to_iter().window_shuffle(3, None)), ErrorKind::Config);
        assert_eq!(kind(Range::new(0, 9).to_iter().window_shuffle(0, 1)), ErrorKind::Config);
        assert_eq!(Range::new(0, 9).seed(1).to_iter().window_shuffle(3, None).collect().unwrap().len(), 9);
    }

    #[test]
    fn a_position_at_the_end_of_a_window_is_the_start_of_the_next() {
        let ds = Range::new(0, 9).to_iter().window_shuffle(4, 1);
        let elements = ds.collect().unwrap();
        for (window, position, given) in [(1, 4, 4), (2, 4, 8), (3, 1, 9)] {
            let (run, mut cx) = (Runtime::inline(), Cx::default());
            let mut iter = ds.iter(&run).unwrap();
            let window_start = StreamState { next_index: 4 * (window - 1), ..StreamState::default() };
            iter.restore(WindowShuffleState { window_start, window, position }, &mut cx).unwrap();
            let rest: Vec<i64> = std::iter::from_fn(|| iter.next(&mut cx).unwrap()).collect();
            assert_eq!(rest, elements[given..]);
        }
    }

    /// Counts up, and tags each number with a record and a number within it.
    struct Noted(u64, u64);

    impl DatasetIterator for Noted {
        type Item = u64;
        type State = u64;

        fn next(&mut self, cx: &mut Cx) -> Result<Option<u64>> {
            let next = (self.0 < self.1).then_some(self.0);
            cx.set_element(next.map(|number| ElementId::new(7, number + 100, 0)));
            self.0 += u64::from(next.is_some());
            Ok(next)
        }
        fn state(&self) -> u64 {
            self.0
        }
        fn restore(&mut self, state: u64, _: &mut Cx) -> Result<()> {
            self.0 = state;
            Ok(())
        }
    }

    #[test]
    fn elements_keep_their_origins_over_a_restore() {
        let mut cx = Cx::default();
        let flow = WindowFlow { window: 4, seed: StageSeed::resolve(Some(3), &[]) };
        let run = Runtime::inline();
        let at = Start { stage: StageId(0), run: &run, planning: None, part: None };
        let mut iter = flow.start(Noted(0, 10), at).unwrap();
        for given in 0..=10 {
            let state = iter.state();
            let mut restored = flow.start(Noted(0, 10), at).unwrap();
            restored.restore(state, &mut cx).unwrap();
            for _ in given..10 {
                let number = restored.next(&mut cx).unwrap().unwrap();
                assert_eq!(cx.element(), Some(ElementId::new(7, number + 100, 0)), "{number} after {given}");
            }
            assert_eq!(restored.next(&mut cx).unwrap(), None);
            iter.next(&mut cx).unwrap();
        }
    }

    #[test]
    fn a_position_outside_the_window_is_a_state_error() {
        let ds = Range::new(0, 9).to_iter().window_shuffle(4, 1);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let state = WindowShuffleState { position: 5, ..iter.state() };
        assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
    }
}
