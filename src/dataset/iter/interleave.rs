use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::combine::{IterCombine, IterCombined};
use super::open_lane::{Lanes, MadeLanes, OpenLane};
use super::{DatasetIterator, IterDataset};
use crate::cx::{Cx, StageId};
use crate::dataset::map::MapDataset;
use crate::dataset::run::opaque::debug_name;
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// Limit of streams that are open at once, far above any useful cycle.
const MAX_CYCLE: usize = 1 << 16;

/// Yields an element of each of `cycle` streams in turn. If a stream ends, the next of `datasets` takes its place.
///
/// Streams are opened in order, when their turn comes. The order is Grain's: a stream that ends gives up its turn, and
/// its place is filled in the next round. A cycle of 1 concatenates the datasets.
/// ```
/// use gristmill::{dataset::iter::interleave, dataset::map::Range, prelude::*};
/// let lanes = [0, 10, 20].map(|start| Range::new(start, start + 2).to_iter());
/// assert_eq!(interleave(lanes, 2).collect()?, [0, 10, 1, 11, 20, 21]);
/// # Ok::<(), gristmill::Error>(())
/// ```
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if `cycle` is 0 or above 65536.
pub fn interleave<D>(datasets: impl IntoIterator<Item = D>, cycle: usize) -> IterInterleave<Lanes<D>>
where
    D: IterDataset + 'static,
{
    IterCombined::new(Arc::new(Lanes::new(datasets.into_iter().collect())), Cycle(cycle))
}

/// [`interleave`] of streams that a [`MapDataset`] makes, a stream per element: for example, a shuffled list of files,
/// each mapped to the stream of its records. Elements that the map dataset drops are skipped.
///
/// The report counts the work of the streams for this stage. Errors name the stage inside the stream.
/// # Errors
/// As [`interleave`], and errors of opening a stream.
pub fn interleave_from<M>(datasets: M, cycle: usize) -> IterInterleave<MadeLanes<M>>
where
    M: MapDataset<Item: IterDataset + 'static> + 'static,
{
    IterCombined::new(Arc::new(MadeLanes(datasets)), Cycle(cycle))
}

/// See [`interleave`].
pub type IterInterleave<L> = IterCombined<Arc<L>, Cycle>;

/// The number of streams of an [`IterInterleave`] that are open at once.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Cycle(usize);

impl<L: OpenLane> IterCombine<Arc<L>> for Cycle {
    type Pass = IterInterleaveIter<L>;

    facts! { name: "interleave" }

    fn params(&self) -> String {
        format!("cycle={}", self.0)
    }
    fn check(&self, _: usize) -> Result<()> {
        if (1..=MAX_CYCLE).contains(&self.0) {
            return Ok(());
        }
        Err(Error::config(format!("the cycle is {} streams, and must be 1 to {MAX_CYCLE}", self.0)))
    }
    fn start(&self, (lanes, run): (Arc<L>, Runtime), stage: StageId, _: &Runtime) -> Result<Self::Pass> {
        let count = lanes.count();
        let places = count.clamp(1, self.0.clamp(1, MAX_CYCLE) as u64);
        let slots = std::iter::repeat_with(|| None).take(places as usize).collect();
        Ok(IterInterleaveIter { lanes, run, slots, next_slot: 0, next_lane: 0, waiting: Vec::new(), count, stage })
    }
}

/// A pass over [`IterInterleave`].
#[doc(hidden)]
pub struct IterInterleaveIter<L: OpenLane> {
    lanes: Arc<L>,
    run: Runtime,
    slots: Vec<Option<(u64, L::Iter)>>,
    next_slot: usize,
    next_lane: u64,
    waiting: Vec<WaitingLane<L>>,
    count: u64,
    stage: StageId,
}

/// A stream that starts at a restored position, or has ended.
type WaitingLane<L> = LaneState<Option<<<L as OpenLane>::Iter as DatasetIterator>::State>>;

/// Position of an [`IterInterleaveIter`].
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterleaveState<S> {
    /// Place in the cycle whose turn is next.
    pub next_slot: usize,
    /// Next stream to open.
    pub next_lane: u64,
    /// Stream in each place of the cycle.
    pub slots: Vec<Option<LaneState<S>>>,
    /// Streams before their first turn that do not start at their beginning, in order. `None` is the end of a stream.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<LaneState<Option<S>>>,
}

/// Position of one stream of an interleave.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneState<S> {
    /// Number of the dataset.
    pub lane: u64,
    /// Position of the stream.
    pub state: S,
}

impl<L: OpenLane> IterInterleaveIter<L> {
    /// Opens the next stream in the current place.
    fn open_next(&mut self, cx: &mut Cx) -> Result<()> {
        let lane = self.next_lane;
        self.next_lane += 1;
        let begin =
            self.waiting.iter().position(|waiting| waiting.lane == lane).map(|at| self.waiting.remove(at).state);
        if let Some(None) = begin {
            return Ok(());
        }
        let mut iter = self.lanes.open(lane, &self.run, cx)?;
        if let (Some(iter), Some(Some(state))) = (&mut iter, begin) {
            self.lanes.enter(lane, self.stage, cx, |cx| iter.restore(state, cx))?;
        }
        self.slots[self.next_slot] = iter.map(|iter| (lane, iter));
        Ok(())
    }

    fn advance(&mut self) {
        self.next_slot = (self.next_slot + 1) % self.slots.len();
    }

    fn check(&self, state: &InterleaveState<<L::Iter as DatasetIterator>::State>) -> Result<()> {
        let fits = state.slots.len() == self.slots.len()
            && state.next_slot < self.slots.len()
            && state.next_lane <= self.count
            && state.slots.iter().flatten().all(|slot| slot.lane < state.next_lane)
            && state.waiting.iter().all(|waiting| (state.next_lane..self.count).contains(&waiting.lane))
            && state.waiting.is_sorted_by(|a, b| a.lane < b.lane);
        if fits {
            return Ok(());
        }
        let (theirs, lane, ours, count) = (state.slots.len(), state.next_lane, self.slots.len(), self.count);
        Err(Error::state(format!(
            "the state has {theirs} places and is at stream {lane}, but the pipeline has {ours} places for {count} streams"
        )))
    }
}

impl<L: OpenLane> DatasetIterator for IterInterleaveIter<L> {
    type Item = <L::Iter as DatasetIterator>::Item;
    type State = InterleaveState<<L::Iter as DatasetIterator>::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        loop {
            let slot = self.next_slot;
            if let Some((lane, iter)) = &mut self.slots[slot] {
                let next = self.lanes.enter(*lane, self.stage, cx, |cx| iter.next(cx));
                self.advance();
                if let Some(element) = next? {
                    cx.produced(self.stage, 1, 0);
                    return Ok(Some(element));
                } else {
                    self.slots[slot] = None
                }
            } else if self.next_lane < self.count {
                self.open_next(cx)?;
            } else if self.slots.iter().all(Option::is_none) {
                return Ok(None);
            } else {
                self.advance();
            }
        }
    }

    fn state(&self) -> Self::State {
        let slot = |slot: &Option<(u64, L::Iter)>| {
            slot.as_ref().map(|(lane, iter)| LaneState { lane: *lane, state: iter.state() })
        };
        let slots = self.slots.iter().map(slot).collect();
        let waiting = self.waiting.clone();
        InterleaveState { next_slot: self.next_slot, next_lane: self.next_lane, slots, waiting }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        self.check(&state).map_err(|e| cx.blame(self.stage, "interleave", e))?;
        for (slot, saved) in self.slots.iter_mut().zip(state.slots) {
            let Some(LaneState { lane, state }) = saved else {
                *slot = None;
                continue;
            };
            if slot.as_ref().is_none_or(|(open, _)| *open != lane) {
                *slot = self.lanes.open(lane, &self.run, cx)?.map(|iter| (lane, iter));
            }
            let Some((_, iter)) = slot else {
                let error = Error::state(format!("stream {lane} was open at the checkpoint, but is now dropped"));
                return Err(cx.blame(self.stage, "interleave", error));
            };
            self.lanes.enter(lane, self.stage, cx, |cx| iter.restore(state, cx))?;
        }
        (self.next_slot, self.next_lane, self.waiting) = (state.next_slot, state.next_lane, state.waiting);
        Ok(())
    }
}

debug_name!(IterInterleaveIter<L: OpenLane>);

#[cfg(test)]
mod tests {
    use crate::{IterDatasetExt, MapDatasetExt};
    use proptest::prelude::*;

    use super::*;
    use crate::dataset::iter::laws;
    use crate::dataset::map::{Range, Source};
    use crate::{ErrorKind, Load};

    /// Stream `k` yields `100 * k`, `100 * k + 1`, ….
    fn lane(k: usize, len: i64) -> impl IterDataset<Item = i64> + 'static {
        Range::new(100 * k as i64, 100 * k as i64 + len).to_iter()
    }

    fn lanes(lens: &[i64]) -> Vec<impl IterDataset<Item = i64> + use<>> {
        lens.iter().enumerate().map(|(k, &len)| lane(k, len)).collect()
    }

    /// Computes the rounds with queues.
    fn naive(lens: &[i64], cycle: usize) -> Vec<i64> {
        let mut waiting = lens.iter().enumerate().map(|(k, &len)| (0..len).map(move |i| 100 * k as i64 + i));
        let mut places: Vec<_> = (0..cycle.min(lens.len()).max(1)).map(|_| None).collect();
        let mut out = Vec::new();
        for turn in 0.. {
            let at = turn % places.len();
            if places[at].is_none() {
                places[at] = waiting.next();
            }
            match places[at].as_mut().map(Iterator::next) {
                Some(Some(x)) => out.push(x),
                Some(None) => places[at] = None,
                None if places.iter().all(Option::is_none) => break,
                None => {}
            }
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn rounds_are_the_naive_ones(lens in prop::collection::vec(0i64..7, 0..7), cycle in 1usize..5) {
            let ds = interleave(lanes(&lens), cycle);
            prop_assert_eq!(laws::check(&ds), naive(&lens, cycle));
        }
    }

    #[test]
    fn streams_are_made_when_their_turn_comes() {
        let files = Source::new(vec![3i64, 0, 2, 5]).filter(|len| *len != 2);
        let ds = interleave_from(files.map(|len| Range::new(10 * len, 11 * len).to_iter().map(|x| x + 1)), 2);
        assert_eq!(laws::check(&ds), [31, 32, 51, 33, 52, 53, 54, 55]);
    }

    #[test]
    fn the_first_work_may_be_that_of_opening() {
        let lanes = Range::new(2, 5).map(|len| Range::new(0, len).to_iter());
        assert_eq!(interleave_from(lanes, 1).loader().build().unwrap().count(), 9);
    }

    #[test]
    fn a_cycle_of_one_chains() {
        assert_eq!(laws::check(&interleave(lanes(&[2, 0, 1]), 1)), [0, 1, 200]);
    }

    #[test]
    fn an_error_of_one_stream_ends_none() {
        let bad =
            |k: i64| Range::new(0, 2).try_map(move |x| if x == k { Err(Error::data("bad")) } else { Ok(x + 10 * k) });
        let ds = interleave([bad(0).to_iter(), bad(1).to_iter()], 2);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        let all: Vec<_> = (0..4).map(|_| iter.next(&mut cx).ok().flatten()).collect();
        assert_eq!(all, [None, Some(10), Some(1), None]);
        assert_eq!(iter.next(&mut cx).unwrap(), None);
    }

    #[test]
    fn streams_begin_where_the_state_says() {
        let lens = [2, 3, 3, 2];
        let ds = interleave(lanes(&lens), 1);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let start = iter.state();
        assert!(serde_json::to_value(&start).unwrap().get("waiting").is_none());
        let mut third = lanes(&lens).remove(2).iter(&Runtime::inline()).unwrap();
        third.next(&mut Cx::default()).unwrap();
        let waiting = vec![LaneState { lane: 1, state: None }, LaneState { lane: 2, state: Some(third.state()) }];
        let (mut cx, rest) = (Cx::default(), [0, 1, 201, 202, 300, 301]);
        for done in 0..=rest.len() {
            iter.restore(InterleaveState { waiting: waiting.clone(), ..start.clone() }, &mut cx).unwrap();
            (0..done).for_each(|at| assert_eq!(iter.next(&mut cx).unwrap(), Some(rest[at])));
            let state = serde_json::to_string(&iter.state()).unwrap();
            let mut resumed = ds.iter(&Runtime::inline()).unwrap();
            resumed.restore(serde_json::from_str(&state).unwrap(), &mut cx).unwrap();
            let left: Vec<i64> = std::iter::from_fn(|| resumed.next(&mut cx).unwrap()).collect();
            assert_eq!(left, rest[done..]);
        }
    }

    #[test]
    fn impossible_cycles_and_states_are_refused() {
        for cycle in [0, MAX_CYCLE + 1] {
            assert_eq!(interleave(lanes(&[1]), cycle).collect().unwrap_err().kind(), ErrorKind::Config);
        }
        let ds = interleave(lanes(&[2, 2, 2]), 2);
        let mut iter = ds.iter(&Runtime::inline()).unwrap();
        let start = iter.state();
        for state in [
            InterleaveState { next_slot: 2, ..start.clone() },
            InterleaveState { next_lane: 4, ..start.clone() },
            InterleaveState { slots: Vec::new(), ..start.clone() },
            InterleaveState { waiting: vec![LaneState { lane: 3, state: None }], ..start.clone() },
            InterleaveState { next_lane: 1, waiting: vec![LaneState { lane: 0, state: None }], ..start.clone() },
            InterleaveState { waiting: [2, 1].map(|lane| LaneState { lane, state: None }).into(), ..start },
        ] {
            assert_eq!(iter.restore(state, &mut Cx::default()).unwrap_err().kind(), ErrorKind::State);
        }
    }
}
