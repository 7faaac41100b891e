//! Which worker has which lane open.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::crew::Member;
use super::job::Job;
use crate::exec::remote::Border;

/// While another has nothing to do, a busy worker is waited for as long as it takes to open a lane elsewhere, twice; but not less
/// or more than this.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);
const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// Homes of lanes: the worker that read a lane last has it open.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By lane: the worker, and its task.
    homes: HashMap<(Border, u64), (u64, u64)>,
    /// Nanoseconds that opening one took, by border, learned.
    opening: HashMap<Border, u64>,
}

/// The home of a lane.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// It has none: anybody may take it.
    None,
    /// It has time.
    Free(u64),
    /// It has none, and is worth waiting for.
    Busy,
}

impl Lanes {
    /// A worker has answered a task of `job`, for which it opened the lane in so many nanoseconds, if it did.
    pub(super) fn read(&mut self, job: &Job, worker: u64, opened_ns: u64) {
        let Some((lane, task)) = job.lane.as_ref().and_then(|lane| Some((lane.lane, lane.after?))) else { return };
        self.homes.insert((job.border, lane), (worker, task));
        let known = self.opening.entry(job.border).or_default();
        // The longest of late: a lane further on takes longer to open, and what was open already took nothing.
        *known = opened_ns.max(*known - *known / 64);
    }

    /// Who has the lane of `job` open. Where workers died over it, it goes to whoever is alone.
    pub(super) fn home(&self, job: &Job, crew: &BTreeMap<u64, Member>, threads: usize) -> Home {
        let Some(lane) = job.lane.as_ref().filter(|_| !job.is_suspect()) else { return Home::None };
        let home = self.homes.get(&(job.border, lane.lane)).filter(|(_, task)| Some(*task) == lane.after);
        let Some((number, member)) = home.and_then(|(number, _)| Some((*number, crew.get(number)?))) else {
            return Home::None;
        };
        if member.has_place(threads, false) {
            return Home::Free(number);
        }
        let opening = Duration::from_nanos(self.opening.get(&job.border).copied().unwrap_or(0));
        let patience = (2 * opening).clamp(LEAST_PATIENCE, MOST_PATIENCE);
        let stays = member.killed.is_none() && !member.leaving;
        // Where everybody has something to do, nobody would have it sooner.
        let idle = crew.values().any(|other| other.has_place(threads, false) && other.tasks.len() < threads);
        if stays && (!idle || job.since.elapsed() < patience) { Home::Busy } else { Home::None }
    }
}
