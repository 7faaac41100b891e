//! Ranges of root indices that are evaluated outside this process: what the core knows of it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::figures::WorkersReport;
use crate::cx::{Made, Off, Piece, StageId};
use crate::element::Owner;
use crate::error::Result;
use crate::sync::Locked;

/// A stage of the whole pipeline whose elements are evaluated elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Border {
    /// The id of the stage, shifted by those of its neighbours.
    pub(crate) stage: u32,
    /// The share of each batch, its index and their number, where only the elements of that are counted through.
    pub(crate) share: Option<(u32, u32)>,
}

#[cfg(test)]
impl From<u32> for Border {
    fn from(stage: u32) -> Self {
        Self { stage, share: None }
    }
}

/// Somebody who evaluates ranges of root indices in other processes.
pub(crate) trait Remote: Debug + Send + Sync {
    /// Threads that evaluate at a time, all processes together.
    fn parallel(&self) -> usize;

    /// Threads of each process that evaluate at a time.
    fn parallel_each(&self) -> usize;

    /// Ranges that may be under way or wait to be read.
    fn window(&self) -> usize;

    /// Bytes that a range should bring at most: more is evaluated in parts, one after the other.
    fn part_bytes(&self) -> usize;

    /// Time that a range should take, so that handing it over takes little beside that: several wake-ups, and messages between processes.
    fn range_time(&self) -> Duration {
        Duration::from_millis(5)
    }

    /// The same for a segment of one of so many lanes: all of them have one ready and one under way.
    fn lane_bytes(&self, lanes: usize) -> usize;

    /// Whether other passes have the same evaluated: ranges should begin and end where theirs do.
    fn is_shared(&self) -> bool {
        false
    }

    /// Has `range` of `border` evaluated, as `how` says. What comes of it goes to `deliver`, in index order.
    fn submit(&self, border: Border, range: Range<u64>, how: How, deliver: Box<dyn Deliver>);

    /// Has them tell what their stages counted, and waits for it no longer than `patience`.
    fn sync(&self, patience: Duration);

    /// Ends everything that is under way: whoever waits is told.
    fn cancel(&self);

    /// Tells who they are and what they use, as of the last [`sync`](Self::sync).
    fn figures(&self) -> WorkersReport;

    /// Time in which those processes were at work, summed over their threads.
    fn busy(&self) -> Duration;
}

/// Ways to evaluate a range.
#[derive(Debug)]
pub(crate) enum How {
    /// Index by index.
    Slots,
    /// The same of these indices, in place of those of the range, which counts them.
    Listed(Box<[u64]>),
    /// Groups of so many indices, from the start of the range on, may come as one.
    Groups(u64),
    /// It is the next elements of a lane, from there on. It is wanted before other segments that are due later.
    Lane { from: Segment, due: u64 },
    /// A stage's function of elements that the parent has read.
    Fed(Fed),
}

/// Elements that the parent has read, for the function of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fed {
    /// Number of the first element.
    pub(crate) first: u64,
    /// The elements in wire format.
    pub(crate) bytes: Box<[u8]>,
}

/// Place from which a lane is to be read on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    pub(crate) lane: u64,
    /// The task that read it up to here: whoever had it may still have the lane open.
    pub(crate) after: Option<u64>,
    pub(crate) at: Point,
}

/// A place in a lane: a state, and how many elements behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// In JSON.
    pub(crate) state: Box<str>,
    pub(crate) skip: u64,
}

/// Takes what came of a range.
pub(crate) trait Deliver: Send {
    /// Whether anybody still waits for it.
    fn wanted(&self) -> bool;

    /// Groups are too large to come as one: from now on their indices come one by one.
    fn ungroup(&mut self);

    /// Takes the elements of the next indices; of a lane, returns where it is then.
    ///
    /// # Errors
    /// `delivery` is not what a worker of this build writes. Nothing was delivered then.
    fn part(&mut self, delivery: &Delivery) -> Result<Option<Point>>;

    /// The next index has no element: one that no worker survives, left out.
    fn skip(&mut self);

    /// Nothing more comes, because of `error`.
    fn fail(&mut self, error: crate::error::Error);
}

/// Elements of some indices, as they lie in memory.
pub(crate) struct Delivery {
    pub(crate) bytes: Arc<dyn Owner>,
    pub(crate) evaluated: Evaluated,
    /// Without the time to open a lane.
    pub(crate) made: Made,
    /// The task that it came of.
    pub(crate) task: u64,
}

/// In a worker: the borders of its pipeline, which tell it by themselves how their elements are evaluated.
#[derive(Debug, Default)]
pub(crate) struct Served {
    prefixes: Entries<dyn Serve>,
    lanes: Entries<dyn ServeLanes>,
    fed: Entries<dyn ServeFed>,
}

type Entries<S> = Mutex<Vec<(Border, Arc<S>)>>;

/// Evaluates elements in front of a border, and writes them into an extent.
pub(crate) trait Serve: Debug + Send + Sync {
    /// Evaluates `indices`, one by one, as [`evaluate`](Self::evaluate) does those of a range.
    fn evaluate_listed(&self, indices: &[u64], extent: &mut [u8]) -> Result<Evaluated>;

    /// Evaluates indices of `range` until its end or until `extent` is full. With `groups_from`, those that are whole in
    /// the range are made one, counted from that index on.
    fn evaluate(&self, range: Range<u64>, groups_from: Option<u64>, extent: &mut [u8]) -> Result<Evaluated>;
}

/// Reads lanes behind a border, and writes their elements into an extent.
pub(crate) trait ServeLanes: Debug + Send + Sync {
    /// Reads elements `range` of a lane, which `from` is in front of, until its end or until `extent` is full. The lane stays
    /// open, as `task` left it.
    fn read_on(&self, task: u64, range: Range<u64>, from: &Segment, extent: &mut [u8]) -> Result<Evaluated>;
}

/// Applies the function of a stage to elements of a stream, and writes the results into an extent.
pub(crate) trait ServeFed: Debug + Send + Sync {
    /// Applies it to the elements of `fed` that are numbered by `range`, until its end or until `extent` is full.
    fn apply(&self, range: Range<u64>, fed: &Fed, extent: &mut [u8]) -> Result<Evaluated>;
}

/// Outcome of a range, as it is sent to the parent: a figure that workers send back is a field here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Evaluated {
    /// Indices of which there is something; fewer than were asked for where the extent is full.
    pub(crate) indices: u64,
    /// Bytes of the extent that were written.
    pub(crate) used: usize,
    /// Bytes that the next slot or group needs, if it was what ended the range early.
    pub(crate) need: Option<usize>,
    /// Whether a lane ends here, or cannot go on.
    pub(crate) last: bool,
    /// Time that it took to open a lane where it was.
    pub(crate) opened: Duration,
    /// What took longest.
    pub(crate) slowest: Option<Piece>,
    /// What was waited for meanwhile.
    pub(crate) off: Off,
    /// Whether it had been made for another pass.
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
