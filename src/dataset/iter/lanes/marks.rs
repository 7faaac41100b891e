//! Lanes that are read for their index: to the end, and with the marks that a reader sets.

use std::sync::Arc;

use super::lane::{LaneIter, MARK_EVERY, Step};
use super::{IterLanes, Shared};
use crate::cx::Cx;
use crate::dataset::iter::open_lane::OpenLane;
use crate::dataset::stage::Stage;
use crate::error::{Error, Result};
use crate::keys::{LaneHead, MarkedLanes, NextMark, ReadMarks};

/// Remedy for an element that fails.
const HELP: &str =
    "an index of lanes covers every element: repair the record, or skip it inside the lane with `skip_bad_records`";

/// The lanes of a pipeline.
pub(super) struct Marked<L> {
    shared: Arc<Shared<L>>,
    head: LaneHead,
}

impl<L: OpenLane> Marked<L> {
    /// Makes the lanes of `stage`. An index identifies them by all stages up to `stage` and the files of their sources.
    pub(super) fn new(stage: &IterLanes<L>, shared: Arc<Shared<L>>) -> Self {
        let mut files = Vec::new();
        let stage: &dyn Stage = stage;
        stage.walk(&mut |_, stage| {
            files.extend(stage.node().source.iter().flat_map(|source| source.files()));
        });
        let head = LaneHead::new(stage.lines(), files, shared.count, MARK_EVERY);
        Self { shared, head }
    }
}

impl<L: OpenLane> MarkedLanes for Marked<L> {
    fn head(&self) -> &LaneHead {
        &self.head
    }

    fn open(&self, lane: u64) -> Result<Box<dyn ReadMarks>> {
        Ok(Box::new(ReadLane { lane, iter: LaneIter::new(&self.shared, lane), cx: Cx::default() }))
    }
}

/// A lane that is read for its marks.
struct ReadLane<L: OpenLane> {
    lane: u64,
    iter: LaneIter<L>,
    cx: Cx,
}

impl<L: OpenLane> ReadMarks for ReadLane<L> {
    fn next_mark(&mut self) -> Result<NextMark> {
        loop {
            match self.iter.step(&mut self.cx) {
                Step::Next((Ok(_), None)) => {}
                Step::Next((Ok(_), Some(mark))) => return text_of(&*mark).map(NextMark::At),
                Step::Ended => return Ok(NextMark::End(self.iter.position.given)),
                Step::Next((Err(error), _)) => {
                    let at = self.iter.position.given.saturating_sub(1);
                    return Err(error.of(&format!("element {at} of lane {}", self.lane)).help(HELP));
                }
                Step::Failed(error) => return Err(error.of(&format!("lane {}", self.lane)).help(HELP)),
            }
        }
    }
}

/// Returns a mark as text, as in an index.
pub(super) fn text_of<T: serde::Serialize>(mark: &T) -> Result<String> {
    serde_json::to_string(mark).map_err(|e| Error::state(format!("the state of a lane cannot be written: {e}")))
}
