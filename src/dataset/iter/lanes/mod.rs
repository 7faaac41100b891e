//! Streams side by side, each of which is read by one at a time, and all of them by many.
//!
//! Lane `l` of `count` is the datasets `l`, `l + count`, `l + 2 * count` and so forth, one behind the other, and depends on
//! nothing else: so whoever likes can read it, from any state of it on. Elements come round by round, one of each lane.

mod ahead;
mod evaluate;
mod evaluator;
mod lane;
mod marks;
mod own;
mod pass;
mod planned;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod remote;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::lane::{LaneMark, LanePosition};
pub use self::pass::IterLanesIter;
pub use self::state::LanesState;

use self::ahead::Ahead;
use self::marks::Marked;
use self::own::Own;
use self::pass::Rounds;
use self::planned::StandIns;
use super::open_lane::{Lanes, MadeLanes, OpenLane};
use super::{DatasetIterator, IterDataset};
use crate::cx::StageId;
use crate::dataset::map::MapDataset;
use crate::dataset::memory::Memory;
use crate::dataset::plan::{Plan, PlanOf, Planning};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::keys::MarkedLanes;
use crate::part::Deal;

/// More lanes than any machine reads at a time; where each of them is, is part of the state.
const MAX_LANES: usize = 1024;

/// The reasons for which lanes have no plan.
const IN_LANES: &str = "is read in order, and its rows are not dealt by lanes";
const NO_LENGTHS: &str = "has an index that does not say how long elements are: pack inside the lanes";
const NO_INDEX: &str = "has no index";

/// One element of each of `count` lanes in turn; a lane that has ended is passed over. Lane `l` is the datasets `l`,
/// `l + count`, `l + 2 * count` and so forth, one behind the other.
///
/// This is how streams without random access, such as compressed files, are read by several at a time: threads and worker
/// processes read different lanes, and the stages inside the datasets run where their lane is read. `count` shapes the stream
/// and is part of its state; who reads never does. Four lanes for each who reads keep all of them busy.
///
/// [`interleave`](super::interleave()) cannot do that: which of its places takes the next dataset depends on which ends first.
/// ```
/// use gristmill::{IterDataset, MapDataset, dataset::iter::lanes, dataset::map::Range};
/// let files = [0, 10, 20].map(|start| Range::new(start, start + 2).to_iter());
/// assert_eq!(lanes(files, 2).collect()?, [0, 10, 1, 11, 20, 21]);
/// # Ok::<(), gristmill::Error>(())
/// ```
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if `count` is 0 or above 1024.
/// # Cost
/// Every lane is open at a time, wherever that is. A lane can be resumed at every 64th element, so a resume reads up to 63
/// elements of each again.
pub fn lanes<D>(datasets: impl IntoIterator<Item = D>, count: usize) -> IterLanes<Lanes<D>>
where
    D: IterDataset + 'static,
{
    IterLanes::new(Lanes::new(datasets.into_iter().collect()), count)
}

/// [`lanes`] of streams that a [`MapDataset`] makes, one from each element: a shuffled list of files, say, each mapped to the
/// stream of its records. What the map dataset drops is passed over.
///
/// In the report the work of the streams is that of this stage, and errors name the stage inside the stream.
/// # Errors
/// As [`lanes`], and what opening a stream reports.
pub fn lanes_from<M>(datasets: M, count: usize) -> IterLanes<MadeLanes<M>>
where
    M: MapDataset<Item: IterDataset + 'static> + 'static,
{
    IterLanes::new(MadeLanes::new(datasets), count)
}

/// See [`lanes`].
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterLanes<L> {
    lanes: Arc<L>,
    count: usize,
    stage: StageId,
}

/// Knowledge that all readers of lanes share.
struct Shared<L> {
    lanes: Arc<L>,
    count: u64,
    /// Runtime of a lane's parts: the thread that reads it.
    run: Runtime,
    stage: StageId,
}

/// An element of a lane.
type ItemOf<L> = <<L as OpenLane>::Iter as DatasetIterator>::Item;
/// Position of one of a lane's datasets.
type StateOf<L> = <<L as OpenLane>::Iter as DatasetIterator>::State;

impl<L: OpenLane> IterLanes<L> {
    fn new(lanes: L, count: usize) -> Self {
        let stage = stage_after(&lanes.nodes());
        Self { lanes: Arc::new(lanes), count, stage }
    }

    fn shared(&self, run: &Runtime) -> Arc<Shared<L>> {
        let count = self.count.clamp(1, MAX_LANES) as u64;
        Arc::new(Shared { lanes: self.lanes.clone(), count, run: run.on_one_thread(), stage: self.stage })
    }
}

impl<L: OpenLane> Stage for IterLanes<L> {
    fn name(&self) -> &'static str {
        "lanes"
    }
    fn params(&self) -> String {
        format!("count={}", self.count)
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.lanes.nodes()
    }
    fn is_border(&self) -> bool {
        true
    }
    fn memory(&self) -> Option<Memory> {
        self.lanes.memory()
    }
    #[cfg(all(feature = "workers", target_os = "linux"))]
    fn check_crossing(&self) -> Result<()> {
        remote::crossing_of_items::<L>().map(drop)
    }
    fn check(&self) -> Result<()> {
        if (1..=MAX_LANES).contains(&self.count) {
            return Ok(());
        }
        Err(Error::config(format!("{} lanes, and there must be 1 to {MAX_LANES}", self.count)))
    }
}

impl<L: OpenLane> IterDataset for IterLanes<L> {
    type Item = ItemOf<L>;
    type Iter = IterLanesIter<L>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let shared = self.shared(run);
        let ahead = evaluator::evaluator(&shared, run)?.map(|evaluator| Ahead::new(evaluator, shared.count));
        Ok(IterLanesIter::new(shared, ahead))
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        let run = &planning.run;
        if run.is_serving() {
            return Ok(None);
        }
        if *run.deal() != Deal::Lanes {
            planning.refuse(self, IN_LANES);
            return Ok(None);
        }
        if !planning.names.is_empty() {
            planning.refuse(self, NO_LENGTHS);
            return Ok(None);
        }
        let shared = self.shared(run);
        let lanes: Arc<dyn MarkedLanes> = Arc::new(Marked::new(self, shared.clone()));
        let Some(file) = run.keys().map(|keys| keys.find_lanes(&lanes)).transpose()?.flatten() else {
            planning.refuse(self, NO_INDEX);
            return Ok(None);
        };
        let evaluator = evaluator::evaluator(&shared, run)?;
        let (count, stage, leaf) = (shared.count, self.stage, planning.take_leaf());
        let pass = Box::new(Rounds::new(StandIns::new(file.clone(), leaf), count, stage));
        Ok(Some(Plan { pass, make: Box::new(Own::new(shared, file, evaluator)), single: true, leaves: Vec::new() }))
    }
}

impl<L: OpenLane + std::fmt::Debug> std::fmt::Debug for IterLanes<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IterLanes").field("lanes", &self.lanes).field("count", &self.count).finish_non_exhaustive()
    }
}
