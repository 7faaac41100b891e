//! Lanes: streams side by side. A lane is read by a single reader at a time; many readers share the lanes.
//!
//! Lane `l` of `count` is the datasets `l`, `l + count`, `l + 2 * count` and so on, concatenated. A lane depends on
//! nothing else, so any reader can read it from any of its states. Elements come in rounds, an element of each lane.

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
use crate::dataset::node::{Describe, Node, Work};
use crate::dataset::plan::{Plan, PlanOf, Planning};
use crate::dataset::stage::{Role, Stage, stage_after};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::keys::MarkedLanes;
use crate::part::Deal;

/// Limit of lanes, above the number that a machine reads at once. The state contains the position of each lane.
const MAX_LANES: usize = 1024;

/// The reasons why lanes have no plan.
const IN_LANES: &str = "is read in order, but its rows are not dealt by lanes";
const NO_LENGTHS: &str = "has an index without the lengths of elements: pack inside the lanes";
const NO_INDEX: &str = "has no index";

/// Yields an element of each of `count` lanes in turn; lanes that have ended are skipped. Lane `l` is the datasets `l`,
/// `l + count`, `l + 2 * count` and so on, concatenated.
///
/// Lanes let several readers share streams without random access, such as compressed files: threads and worker
/// processes read different lanes. The stages inside the datasets run on the reader of their lane. `count` shapes the
/// stream and is part of its state; the number of readers has no effect. Four lanes per reader keep all readers busy.
///
/// The streams of an [`interleave`](super::interleave()) cannot be shared: the place that takes the next dataset
/// depends on the stream that ends first.
/// ```
/// use gristmill::{dataset::iter::lanes, dataset::map::Range, prelude::*};
/// let files = [0, 10, 20].map(|start| Range::new(start, start + 2).to_iter());
/// assert_eq!(lanes(files, 2).collect()?, [0, 10, 1, 11, 20, 21]);
/// # Ok::<(), gristmill::Error>(())
/// ```
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if `count` is 0 or above 1024.
/// # Cost
/// All lanes are open at once, in this process or in workers. A lane can be resumed at every 64th element, so a resume
/// reads up to 63 elements of each lane again.
pub fn lanes<D>(datasets: impl IntoIterator<Item = D>, count: usize) -> IterLanes<Lanes<D>>
where
    D: IterDataset + 'static,
{
    IterLanes::new(Lanes::new(datasets.into_iter().collect()), count)
}

/// [`lanes`] of streams that a [`MapDataset`] makes, a stream per element: for example, a shuffled list of files, each
/// mapped to the stream of its records. Elements that the map dataset drops are skipped.
///
/// The report counts the work of the streams for this stage. Errors name the stage inside the stream.
/// # Errors
/// As [`lanes`], and errors of opening a stream.
pub fn lanes_from<M>(datasets: M, count: usize) -> IterLanes<MadeLanes<M>>
where
    M: MapDataset<Item: IterDataset + 'static> + 'static,
{
    IterLanes::new(MadeLanes(datasets), count)
}

/// See [`lanes`].
#[must_use = "datasets are lazy and do nothing until read"]
pub struct IterLanes<L> {
    lanes: Arc<L>,
    count: usize,
    stage: StageId,
}

/// Data that all readers of lanes share.
struct Shared<L> {
    lanes: Arc<L>,
    count: u64,
    /// Runtime of the stages inside a lane: they run on the thread that reads the lane.
    run: Runtime,
    stage: StageId,
}

/// Type of an element of a lane.
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
    fn node(&self) -> Node<'_> {
        Node {
            describe: self,
            work: Work::Border,
            memory: self.lanes.memory(),
            #[cfg(all(feature = "workers", target_os = "linux"))]
            crossing: Some(|_| remote::crossing_of_items::<L>().map(drop)),
            ..Node::new("lanes", Role::Stateful)
        }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        self.lanes.nodes()
    }
}

impl<L> Describe for IterLanes<L> {
    fn params(&self) -> String {
        format!("count={}", self.count)
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
        let (count, stage, leaf) = (shared.count, self.stage, planning.take_border());
        let pass = Box::new(Rounds::new(StandIns::new(file.clone(), leaf), count, stage));
        Ok(Some(Plan { pass, make: Box::new(Own::new(shared, file, evaluator)), single: true, chains: Vec::new() }))
    }
}

impl<L: OpenLane + std::fmt::Debug> std::fmt::Debug for IterLanes<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IterLanes").field("lanes", &self.lanes).field("count", &self.count).finish_non_exhaustive()
    }
}
