//! Ranges of root indices that are evaluated outside this process: what the core knows of it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cx::StageId;
use crate::element::Owner;
use crate::error::Result;
use crate::report::WorkersReport;

/// A stage of the whole pipeline whose elements are evaluated elsewhere: its id, shifted by those of its neighbours.
pub(crate) type Border = u32;

/// Somebody who evaluates ranges of root indices in other processes.
pub(crate) trait Remote: Debug + Send + Sync {
    /// How many evaluate at a time, all processes together.
    fn parallel(&self) -> usize;

    /// How many ranges may be under way or wait to be read.
    fn window(&self) -> usize;

    /// Bytes that a range should bring at most: more is evaluated in parts, one after the other.
    fn part_bytes(&self) -> usize;

    /// Has `range` of `border` evaluated. What comes of it goes to `deliver`, in index order. Groups of so many indices, from
    /// the start of the range on, may come as one.
    fn submit(&self, border: Border, range: Range<u64>, group: Option<u64>, deliver: Box<dyn Deliver>);

    /// Has them tell what their stages counted, and waits for it a moment.
    fn sync(&self);

    /// Ends everything that is under way: whoever waits is told.
    fn cancel(&self);

    /// Who they are and what they use, as of the last [`sync`](Self::sync).
    fn figures(&self) -> WorkersReport;

    /// Time in which those processes were at work, summed over their threads.
    fn busy(&self) -> Duration;
}

/// Takes what came of a range.
pub(crate) trait Deliver: Send {
    /// Whether anybody still waits for it.
    fn wanted(&self) -> bool;

    /// Groups are too large to come as one: from now on their indices come one by one.
    fn ungroup(&mut self);

    /// What came of the next indices.
    ///
    /// # Errors
    /// Where `part` is not what a worker of this build writes. Nothing was delivered then.
    fn part(&mut self, part: &Part) -> Result<()>;

    /// The next index has no element: one that no worker survives, left out.
    fn skip(&mut self);

    /// Nothing more comes, because of `error`.
    fn fail(&mut self, error: crate::error::Error);
}

/// What came of some indices, as it lies in memory.
pub(crate) struct Part {
    pub(crate) bytes: Arc<dyn Owner>,
    pub(crate) used: usize,
    pub(crate) indices: u64,
    pub(crate) took: Duration,
}

/// In a worker: the borders of its pipeline, which tell it by themselves how their elements are evaluated.
#[derive(Debug, Default)]
pub(crate) struct Served(Mutex<Vec<(Border, Arc<dyn Serve>)>>);

/// Evaluates elements in front of a border, and writes them into an extent.
pub(crate) trait Serve: Debug + Send + Sync {
    /// Evaluates indices of `range` until its end or until `extent` is full. With `groups_from`, those that are whole in
    /// the range are made one, counted from that index on.
    fn evaluate(&self, range: Range<u64>, groups_from: Option<u64>, extent: &mut [u8]) -> Result<Evaluated>;
}

/// What came of a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluated {
    pub(crate) indices: u64,
    pub(crate) used: usize,
    /// Bytes that the next slot or group needs, if it was what ended the range early.
    pub(crate) need: Option<usize>,
}

impl Served {
    pub(crate) fn add(&self, border: Border, serve: Arc<dyn Serve>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((border, serve));
    }

    pub(crate) fn find(&self, border: Border) -> Option<Arc<dyn Serve>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(b, _)| *b == border).map(|(_, serve)| serve.clone())
    }
}

pub(super) fn border(base: usize, stage: StageId) -> Border {
    u32::try_from(base + stage.index()).expect("a pipeline has fewer stages than that")
}
