//! Makes the planned elements of lanes and no others: each lane is read from the mark before its first wanted element.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evaluate::{Ending, LaneChunk, LaneEvaluator, Wanted, open_lane};
use super::lane::{LaneIter, LaneMark, LanePosition, MARK_EVERY, Step};
use super::planned::{check_mark, place_of, position_at, stale};
use super::{ItemOf, Shared, StateOf};
use crate::cx::Cx;
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::plan::{Make, Member};
use crate::dataset::run::evaluate::Incoming;
use crate::error::{Error, Result};
use crate::exec::Failed;
use crate::keys::LaneFile;

/// Distance below which elements are read and dropped, instead of opening the lane again at a later mark.
const NEAR: u64 = 4 * MARK_EVERY;

/// Maker of elements of lanes.
pub(super) struct Own<L: OpenLane> {
    shared: Arc<Shared<L>>,
    file: Arc<LaneFile>,
    /// Reads lanes ahead, if present.
    evaluator: Option<Box<dyn LaneEvaluator<ItemOf<L>, StateOf<L>>>>,
    lanes: Vec<OwnLane<L>>,
    /// Lanes with new wanted elements, for which no segment has been requested yet.
    idle: BTreeSet<usize>,
    /// Elements made so far.
    made: u64,
    /// Limit of elements in a segment.
    quota: u64,
}

/// A segment of a lane, as it arrives.
type Chunks<L> = Incoming<LaneChunk<ItemOf<L>, StateOf<L>>>;

/// A lane and its progress.
struct OwnLane<L: OpenLane> {
    lane: u64,
    file: Arc<LaneFile>,
    /// Places of wanted elements, with the number of requests for each.
    wanted: BTreeMap<u64, u64>,
    /// Wanted elements that were read.
    kept: BTreeMap<u64, Result<ItemOf<L>>>,
    /// Position after the last element read, if the lane is open.
    front: Option<LanePosition<StateOf<L>>>,
    /// True if an element has failed: later marks then differ from the marks in the index.
    is_shifted: bool,
    /// The lane, if no evaluator reads ahead.
    iter: Option<LaneIter<L>>,
    /// The segment under way, and the number of its elements that have not arrived.
    coming: Option<(Chunks<L>, u64)>,
    after: Option<u64>,
}

impl<L: OpenLane> OwnLane<L> {
    fn new(lane: u64, file: Arc<LaneFile>) -> Self {
        Self {
            lane,
            file,
            wanted: BTreeMap::new(),
            kept: BTreeMap::new(),
            front: None,
            is_shifted: false,
            iter: None,
            coming: None,
            after: None,
        }
    }

    fn close(&mut self) {
        (self.front, self.is_shifted, self.iter, self.coming, self.after) = (None, false, None, None, None);
    }

    /// Returns the number of elements of the lane, from its index.
    fn count(&self) -> u64 {
        self.file.elements_of(self.lane)
    }

    /// Returns the position from which to read to `place`: the lane's current position, or the mark before `place`.
    fn seek(&mut self, place: u64) -> Result<LanePosition<StateOf<L>>> {
        let number = place / MARK_EVERY;
        let is_near = |front: &&LanePosition<_>| {
            front.given <= place && (place - front.given < NEAR || number * MARK_EVERY <= front.given)
        };
        if let Some(front) = self.front.as_ref().filter(is_near) {
            return Ok(front.clone());
        }
        self.close();
        let front = position_at(&self.file, self.lane, number)?;
        self.front = Some(front.clone());
        Ok(front)
    }

    /// Takes in the next element, and the mark after it.
    fn accept(&mut self, element: Result<ItemOf<L>>, mark: Option<Arc<LaneMark<StateOf<L>>>>) -> Result<()> {
        let (count, lane) = (self.count(), self.lane);
        let Some(front) = &mut self.front else { return Err(Error::state(format!("lane {lane} is not open"))) };
        let place = front.given;
        if place >= count {
            return Err(stale(&self.file, &format!("lane {lane} has more than the {count} elements in the index")));
        }
        front.advance(mark.clone());
        self.is_shifted |= element.is_err();
        if let Some(mark) = mark.filter(|_| !self.is_shifted) {
            check_mark(&self.file, lane, front.given / MARK_EVERY, &mark)?;
        }
        if self.wanted.contains_key(&place) {
            self.kept.entry(place).or_insert(element);
        }
        Ok(())
    }

    /// Checks the number of elements at the lane's end against the index.
    fn check_end(&self) -> Result<()> {
        let (given, count) = (self.front.as_ref().map_or(0, |front| front.given), self.count());
        if given == count {
            return Ok(());
        }
        Err(stale(&self.file, &format!("lane {} ends after {given} elements, but has {count} in the index", self.lane)))
    }

    /// Reads past `place` on this thread. If `place` is the last element, also reads the end.
    fn read(&mut self, shared: &Arc<Shared<L>>, place: u64, cx: &mut Cx) -> Result<()> {
        let from = self.seek(place)?;
        let mut iter = open_lane(shared, self.iter.take(), from, cx)?;
        let reaches = |lane: &Self| lane.front.as_ref().map_or(0, |front| front.given);
        while reaches(self) <= place || reaches(self) == self.count() {
            match iter.step(cx) {
                Step::Next((element, mark)) => self.accept(element, mark)?,
                Step::Ended => return self.check_end(),
                Step::Failed(error) => return Err(error),
            }
        }
        self.iter = Some(iter);
        Ok(())
    }

    /// Returns the first wanted place that has not been read.
    fn first_wanted(&self) -> Option<u64> {
        self.wanted.keys().copied().find(|place| !self.kept.contains_key(place))
    }

    /// Requests the wanted elements from `place` on, up to `quota` elements.
    fn ask(
        &mut self,
        evaluator: &dyn LaneEvaluator<ItemOf<L>, StateOf<L>>,
        place: u64,
        quota: u64,
        due: u64,
    ) -> Result<()> {
        let from = self.seek(place)?;
        let mut last = place;
        for &wanted in self.wanted.range(place..).map(|(wanted, _)| wanted) {
            if wanted - last >= NEAR || wanted - place >= quota {
                break;
            }
            last = wanted;
        }
        // After the last element, the segment includes the end.
        let end = if last + 1 == self.count() { last + 2 } else { last + 1 };
        let quota = end - from.given;
        let wanted = Wanted { lane: self.lane, from, after: self.after, quota, due };
        self.coming = Some((evaluator.submit(wanted), quota));
        Ok(())
    }

    /// Receives the next chunk. Returns the nanoseconds and the bytes per element.
    fn receive(&mut self, cx: &mut Cx) -> Result<Option<(u64, u64)>> {
        let Some((incoming, left)) = self.coming.take() else { return Ok(None) };
        let chunk = incoming.receive(cx).0?;
        let len = chunk.slots.len() as u64;
        self.after = Some(chunk.after);
        chunk.slots.into_iter().try_for_each(|(element, mark)| self.accept(element, mark))?;
        match (chunk.ending, left.saturating_sub(len)) {
            (Ending::Open, 0) => {}
            (Ending::Open, left) => self.coming = Some((incoming, left)),
            (Ending::Ended, _) => self.check_end()?,
            (Ending::Failed(error), _) => return Err(error),
        }
        let each_ns = (chunk.made.took().as_nanos() as u64).checked_div(len);
        Ok(each_ns.map(|each_ns| (each_ns, chunk.made.bytes / len.max(1))))
    }

    /// Takes out an element that has been read.
    fn take(&mut self, place: u64) -> Option<Result<ItemOf<L>>> {
        let kept = self.kept.remove(&place)?;
        if let Some(times) = self.wanted.get_mut(&place) {
            *times -= 1;
            if *times == 0 {
                self.wanted.remove(&place);
            }
        }
        Some(kept)
    }
}

impl<L: OpenLane> Own<L> {
    pub(super) fn new(
        shared: Arc<Shared<L>>,
        file: Arc<LaneFile>,
        evaluator: Option<Box<dyn LaneEvaluator<ItemOf<L>, StateOf<L>>>>,
    ) -> Self {
        let lanes = (0..shared.count).map(|lane| OwnLane::new(lane, file.clone())).collect();
        Self { shared, file, evaluator, lanes, idle: BTreeSet::new(), made: 0, quota: MARK_EVERY }
    }

    /// Returns the lane of the element in a recipe, and its place there.
    fn place(&self, recipe: &[Member]) -> Result<(usize, u64)> {
        let [Member { id, .. }] = recipe else {
            return Err(Error::state(format!("{} elements of lanes are planned, expected 1", recipe.len())));
        };
        let (lane, place) = place_of(id.index);
        if lane < self.lanes.len() as u64 && place < self.file.elements_of(lane) {
            return Ok((lane as usize, place));
        }
        Err(Error::state(format!("element {place} of lane {lane} is planned, but does not exist")))
    }

    /// Requests segments of idle lanes that have wanted elements.
    fn ask_idle(&mut self) -> Result<()> {
        let Some(evaluator) = &self.evaluator else { return Ok(()) };
        for at in std::mem::take(&mut self.idle) {
            let lane = &mut self.lanes[at];
            if let Some(place) = lane.first_wanted().filter(|_| lane.coming.is_none()) {
                lane.ask(&**evaluator, place, self.quota, self.made)?;
            }
        }
        Ok(())
    }

    /// Continues to read a lane, towards `place`.
    fn read(&mut self, at: usize, place: u64, cx: &mut Cx) -> Result<()> {
        let (count, lane) = (self.lanes.len(), &mut self.lanes[at]);
        let Some(evaluator) = &self.evaluator else { return lane.read(&self.shared, place, cx) };
        let is_behind = lane.front.as_ref().is_some_and(|front| front.given > place);
        if lane.coming.is_none() || is_behind {
            lane.coming = None;
            lane.ask(&**evaluator, place, self.quota, self.made)?;
        }
        if let Some((each_ns, bytes)) = lane.receive(cx)? {
            self.quota = evaluator.aim(count).next_size(self.quota, each_ns, bytes);
        }
        if lane.coming.is_none() {
            self.idle.insert(at);
        }
        self.ask_idle()
    }
}

impl<L: OpenLane> Make<ItemOf<L>> for Own<L> {
    fn expect(&mut self, recipe: &[Member]) {
        // If the recipe has no valid place, `make` returns the error.
        if let Ok((at, place)) = self.place(recipe) {
            *self.lanes[at].wanted.entry(place).or_default() += 1;
            self.idle.insert(at);
        }
    }

    fn make(&mut self, recipe: &[Member], failed: &Failed, cx: &mut Cx) -> Result<Option<ItemOf<L>>> {
        let (at, place) = self.place(recipe)?;
        self.lanes[at].wanted.entry(place).or_insert(1);
        cx.begin_element();
        self.ask_idle()?;
        let element = loop {
            if let Some(element) = self.lanes[at].take(place) {
                break element;
            }
            if let Err(error) = self.read(at, place, cx) {
                self.lanes[at].close();
                return Err(cx.blame(self.shared.stage, "lanes", error));
            }
        };
        self.made += 1;
        cx.produced(self.shared.stage, u64::from(element.is_ok()), 0);
        match element {
            Ok(element) => Ok(Some(element)),
            Err(error) => failed.pad(error).map(|()| None),
        }
    }

    fn forget(&mut self) -> Result<()> {
        self.idle.clear();
        for lane in &mut self.lanes {
            lane.wanted.clear();
            lane.kept.clear();
            lane.close();
        }
        Ok(())
    }
}
