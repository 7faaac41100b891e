//! Plans lanes from their index: rounds over stand-ins, each with the lane of its element and the place in the lane.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lane::{LaneMark, LanePosition, MARK_EVERY};
use super::marks::text_of;
use super::pass::ReadLanes;
use crate::cx::{Cx, ElementId, StageId};
use crate::dataset::iter::Position;
use crate::dataset::plan::StandIn;
use crate::error::{Error, Result};
use crate::keys::{LaneFile, stale_lanes};

/// Bits for the place of an element in its lane.
const PLACE_BITS: u32 = 48;

/// Encodes an element of a lane as a number. Elements of a lane have consecutive numbers, and lanes follow in order.
fn slot_of(lane: u64, place: u64) -> u64 {
    lane << PLACE_BITS | place
}

/// Returns the lane of an element, and its place there.
pub(super) fn place_of(slot: u64) -> (u64, u64) {
    (slot >> PLACE_BITS, slot & ((1 << PLACE_BITS) - 1))
}

/// Returns the position of lane `lane` at its mark `number`. Mark 0 is the start.
pub(super) fn position_at<S: DeserializeOwned>(file: &LaneFile, lane: u64, number: u64) -> Result<LanePosition<S>> {
    match number {
        0 => Ok(LanePosition::start(lane)),
        _ => Ok(LanePosition { given: number * MARK_EVERY, mark: mark_at(file, lane, number)?, skip: 0 }),
    }
}

fn mark_at<S: DeserializeOwned>(file: &LaneFile, lane: u64, number: u64) -> Result<Arc<LaneMark<S>>> {
    let mark = serde_json::from_str(file.mark(lane, number)?).map_err(|e| {
        let text = format!("mark {number} of lane {lane} cannot be read: {e}");
        stale_lanes(Error::data(text).path(file.path()))
    })?;
    Ok(Arc::new(mark))
}

/// Checks that `mark` equals the mark with this number in the index.
pub(super) fn check_mark<S: Serialize>(file: &LaneFile, lane: u64, number: u64, mark: &LaneMark<S>) -> Result<()> {
    let expected = match number {
        0 => text_of(&*LanePosition::<()>::start(lane).mark)?,
        _ => file.mark(lane, number)?.to_owned(),
    };
    let found = text_of(mark)?;
    if found == expected {
        return Ok(());
    }
    let at = number * MARK_EVERY;
    Err(stale(file, &format!("lane {lane} is at {found} after {at} elements, but at {expected} in the index")))
}

/// Returns the error for lanes that differ from their index.
#[cold]
pub(super) fn stale(file: &LaneFile, why: &str) -> Error {
    stale_lanes(Error::data(format!("the index of lanes is stale: {why}")).path(file.path()))
}

/// Stand-ins for the elements of lanes.
pub(super) struct StandIns<S> {
    file: Arc<LaneFile>,
    leaf: u32,
    lanes: Vec<Option<LanePosition<S>>>,
}

impl<S: Position> StandIns<S> {
    pub(super) fn new(file: Arc<LaneFile>, leaf: u32) -> Self {
        let lanes = (0..file.head().lanes).map(|lane| Some(LanePosition::start(lane))).collect();
        Self { file, leaf, lanes }
    }

    /// Advances a lane that has another element.
    fn advance(&mut self, at: usize) -> Result<StandIn> {
        let (lane, file) = (at as u64, &self.file);
        let position = self.lanes[at].as_mut().ok_or_else(|| Error::state(format!("lane {lane} has ended")))?;
        let number = position.given;
        let is_due = LanePosition::<S>::is_due(position.skip, false);
        let mark = is_due.then(|| mark_at(file, lane, (number + 1) / MARK_EVERY)).transpose()?;
        position.advance(mark);
        Ok(StandIn::new(ElementId::new(self.leaf, slot_of(lane, number), 0), &Arc::default(), &[]))
    }

    /// Checks that a lane can have this position.
    fn check(&self, lane: u64, position: &LanePosition<S>) -> Result<()> {
        let (given, count) = (position.given, self.file.elements_of(lane));
        let why = if given > count {
            format!("lane {lane} has {count} elements, but the state is after {given}")
        } else if position.skip != given % MARK_EVERY {
            format!(
                "the state has a mark of lane {lane} after {} elements, as after a failed element",
                given - position.skip
            )
        } else {
            return check_mark(&self.file, lane, given / MARK_EVERY, &position.mark);
        };
        Err(stale(&self.file, &why))
    }
}

impl<S: Position> ReadLanes<S> for StandIns<S> {
    type Item = StandIn;
    /// The made elements are counted, not their stand-ins.
    const IS_COUNTED: bool = false;

    fn positions(&self) -> Vec<Option<LanePosition<S>>> {
        self.lanes.clone()
    }

    fn position(&self, at: usize) -> Option<&LanePosition<S>> {
        self.lanes[at].as_ref()
    }

    fn next(&mut self, at: usize, _: StageId, _: &mut Cx) -> Option<Result<StandIn>> {
        let given = self.lanes[at].as_ref()?.given;
        if given >= self.file.elements_of(at as u64) {
            self.lanes[at] = None;
            return None;
        }
        Some(self.advance(at))
    }

    fn is_over(&self) -> bool {
        self.lanes.iter().all(Option::is_none)
    }

    fn seek(&mut self, lanes: Vec<Option<LanePosition<S>>>, _: &mut Cx) -> Result<()> {
        let open = (0..).zip(&lanes).filter_map(|(lane, at)| Some((lane, at.as_ref()?)));
        open.into_iter().try_for_each(|(lane, at)| self.check(lane, at))?;
        self.lanes = lanes;
        Ok(())
    }
}
