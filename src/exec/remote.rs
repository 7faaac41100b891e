//! The evaluation of ranges of root indices outside this process.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::figures::WorkersReport;
use crate::cx::{ElementGroup, Evaluation, StageId, ThreadWaits};
use crate::element::Owner;
use crate::error::Result;
use crate::sync::Locked;

/// Stage of the whole pipeline whose elements are evaluated elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Border {
    /// Id of the stage, shifted by the stages of its neighbours.
    pub(crate) stage: u32,
    /// Share of each batch as (index, count), if indices count the elements of that share only.
    pub(crate) share: Option<(u32, u32)>,
}

#[cfg(test)]
impl From<u32> for Border {
    fn from(stage: u32) -> Self {
        Self { stage, share: None }
    }
}

/// Evaluator of ranges of root indices in other processes.
pub(crate) trait Remote: Debug + Send + Sync {
    /// Returns the number of threads that evaluate at a time, over all processes.
    fn parallel(&self) -> usize;

    /// Returns the number of threads that evaluate at a time in each process.
    fn parallel_each(&self) -> usize;

    /// Returns the maximum number of ranges that are in flight or wait to be read.
    fn window(&self) -> usize;

    /// Returns the maximum bytes of a range's result. A larger result is evaluated in parts, one after the other.
    fn part_bytes(&self) -> usize;

    /// Returns the target time of a range. It is long compared with the hand-over: several wake-ups, and messages between processes.
    fn range_time(&self) -> Duration {
        Duration::from_millis(5)
    }

    /// Returns the maximum bytes of a segment if there are `lanes` lanes. Each lane has one segment ready and one in flight.
    fn lane_bytes(&self, lanes: usize) -> usize;

    /// Returns true if other passes evaluate the same elements. Ranges should then begin and end at the same indices.
    fn is_shared(&self) -> bool {
        false
    }

    /// Submits `range` of `border` for evaluation by the method `how`. Results go to `deliver`, in index order.
    fn submit(&self, border: Border, range: Range<u64>, how: How, deliver: Box<dyn Deliver>);

    /// Collects the counts of the evaluators' stages, and waits at most `patience` for them.
    fn sync(&self, patience: Duration);

    /// Ends everything in flight, and notifies the waiting receivers.
    fn cancel(&self);

    /// Returns the figures of the processes, as of the last [`sync`](Self::sync).
    fn figures(&self) -> WorkersReport;

    /// Returns the time at work, summed over the threads of all processes.
    fn busy(&self) -> Duration;
}

/// Method of evaluating a range.
#[derive(Debug)]
pub(crate) enum How {
    /// Index by index.
    Slots,
    /// Index by index, with these indices instead of the range's indices. The range only counts them.
    Listed(Box<[u64]>),
    /// Groups of this number of indices, from the start of the range on. A group may come as one.
    Groups(u64),
    /// The next elements of a lane, from this place on. They have priority over segments that are due later.
    Lane { from: Segment, due: u64 },
    /// The function of a stage, applied to elements that the parent has read.
    Fed(Fed),
}

/// Elements that the parent has read, as input of a stage's function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fed {
    /// Number of the first element.
    pub(crate) first: u64,
    /// The elements in wire format.
    pub(crate) bytes: Box<[u8]>,
}

/// Place at which the reading of a lane continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    pub(crate) lane: u64,
    /// Task that read the lane up to this place. The worker of that task may still have the lane open.
    pub(crate) after: Option<u64>,
    pub(crate) at: Point,
}

/// Place in a lane: a state, and a number of elements after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// State in JSON.
    pub(crate) state: Box<str>,
    pub(crate) skip: u64,
}

/// Receiver of the results of a range.
pub(crate) trait Deliver: Send {
    /// Returns true if the range is still needed.
    fn wanted(&self) -> bool;

    /// Switches from groups to single indices, because groups are too large to come as one.
    fn ungroup(&mut self);

    /// Takes the elements of the next indices. For a lane, returns the place after them.
    ///
    /// # Errors
    /// If `delivery` is not in the format of this build's workers. Nothing was delivered then.
    fn part(&mut self, delivery: &Delivery) -> Result<Option<Point>>;

    /// Skips the next index, whose element is left out because no worker survives it.
    fn skip(&mut self);

    /// Ends the range with `error`.
    fn fail(&mut self, error: crate::error::Error);
}

/// Elements of some indices, in their form in memory.
pub(crate) struct Delivery {
    pub(crate) bytes: Arc<dyn Owner>,
    pub(crate) evaluated: Evaluated,
    /// Times and figures of the evaluation, without the opening of a lane.
    pub(crate) made: Evaluation,
    /// Task that the elements come from.
    pub(crate) task: u64,
}

/// Borders of a worker's pipeline, each with the evaluator of its elements.
#[derive(Debug, Default)]
pub(crate) struct Served {
    prefixes: Entries<dyn Serve>,
    lanes: Entries<dyn ServeLanes>,
    fed: Entries<dyn ServeFed>,
}

type Entries<S> = Mutex<Vec<(Border, Arc<S>)>>;

/// Evaluator of the elements before a border, which writes them into an extent.
pub(crate) trait Serve: Debug + Send + Sync {
    /// Evaluates `indices` one by one, like [`evaluate`](Self::evaluate) for a range.
    fn evaluate_listed(&self, indices: &[u64], extent: &mut [u8]) -> Result<Evaluated>;

    /// Evaluates indices of `range` until its end or until `extent` is full.
    /// With `groups_from`, groups are counted from that index. Groups that are whole in the range are made into one.
    fn evaluate(&self, range: Range<u64>, groups_from: Option<u64>, extent: &mut [u8]) -> Result<Evaluated>;
}

/// Reader of lanes after a border, which writes their elements into an extent.
pub(crate) trait ServeLanes: Debug + Send + Sync {
    /// Reads elements `range` of a lane, starting from the place `from` before them, until its end or until `extent` is full.
    /// The lane stays open at the place that `task` has reached.
    fn read_on(&self, task: u64, range: Range<u64>, from: &Segment, extent: &mut [u8]) -> Result<Evaluated>;
}

/// Evaluator of a stage's function for elements of a stream, which writes the results into an extent.
pub(crate) trait ServeFed: Debug + Send + Sync {
    /// Applies the function to the elements of `fed` with numbers in `range`, until its end or until `extent` is full.
    fn apply(&self, range: Range<u64>, fed: &Fed, extent: &mut [u8]) -> Result<Evaluated>;
}

/// Outcome of a range, as sent to the parent. Each figure that workers send back is a field here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Evaluated {
    /// Number of indices with a result; fewer than requested if the extent is full.
    pub(crate) indices: u64,
    /// Bytes of the extent written.
    pub(crate) used: usize,
    /// Bytes that the next slot or group needs, if its size ended the range early.
    pub(crate) need: Option<usize>,
    /// Whether the lane ends here, or cannot continue.
    pub(crate) last: bool,
    /// Time taken to open the lane at its place.
    pub(crate) opened: Duration,
    /// Elements that took longest.
    pub(crate) slowest: Option<ElementGroup>,
    /// Waits during the evaluation.
    pub(crate) off: ThreadWaits,
    /// Whether the result was made for another pass.
    pub(crate) kept: bool,
}

impl Served {
    pub(crate) fn add(&self, border: Border, serve: Arc<dyn Serve>) {
        add(&self.prefixes, border, serve);
    }

    pub(crate) fn add_lanes(&self, border: Border, serve: Arc<dyn ServeLanes>) {
        add(&self.lanes, border, serve);
    }

    pub(crate) fn add_fed(&self, border: Border, serve: Arc<dyn ServeFed>) {
        add(&self.fed, border, serve);
    }

    pub(crate) fn find(&self, border: Border) -> Option<Arc<dyn Serve>> {
        find(&self.prefixes, border)
    }

    pub(crate) fn find_lanes(&self, border: Border) -> Option<Arc<dyn ServeLanes>> {
        find(&self.lanes, border)
    }

    pub(crate) fn find_fed(&self, border: Border) -> Option<Arc<dyn ServeFed>> {
        find(&self.fed, border)
    }
}

fn add<S: ?Sized>(entries: &Entries<S>, border: Border, serve: Arc<S>) {
    entries.locked().push((border, serve));
}

fn find<S: ?Sized>(entries: &Entries<S>, border: Border) -> Option<Arc<S>> {
    let all = entries.locked();
    all.iter().find(|(b, _)| *b == border).map(|(_, serve)| serve.clone())
}

pub(super) fn border(base: usize, stage: StageId, share: Option<(u32, u32)>) -> Border {
    Border { stage: u32::try_from(base + stage.index()).expect("a pipeline has fewer stages than that"), share }
}
