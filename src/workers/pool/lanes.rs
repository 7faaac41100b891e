//! Lanes that workers have open.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::carrier::Carrier;
use super::job::Job;
use super::workers::Workers;
use crate::exec::remote::Border;

/// Bounds on the wait for a busy worker while another worker is idle. The wait is twice the time to open a lane
/// elsewhere.
const LEAST_PATIENCE: Duration = Duration::from_millis(5);
const MOST_PATIENCE: Duration = Duration::from_secs(5);

/// Homes of lanes: the worker that last read a lane has it open.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Worker and its task, by lane.
    homes: HashMap<(Border, u64), (u64, u64)>,
    /// Learned time to open a lane, by border.
    opening: HashMap<Border, Duration>,
}

/// The worker that has a lane open, and whether it is free.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// No worker to prefer; any worker may take the lane.
    None,
    /// The worker with this number has the lane open and is free.
    Free(u64),
    /// The worker with the open lane is busy, and worth the wait.
    Busy,
}

impl Lanes {
    /// Records that a worker answered a task of `job`, and the time that it took to open the lane (zero if already
    /// open).
    pub(super) fn read(&mut self, job: &Job, worker: u64, opened: Duration) {
        let Some((lane, task)) = job.lane.as_ref().and_then(|lane| Some((lane.lane, lane.after?))) else { return };
        self.homes.insert((job.border, lane), (worker, task));
        let known = self.opening.entry(job.border).or_default();
        // A decaying maximum: later positions take longer to open, and lanes that were open took no time.
        *known = opened.max(*known - *known / 64);
    }

    /// Returns the home of the lane of `job`. A suspect job has no home, because it needs an idle worker.
    pub(super) fn home<C: Carrier>(&self, job: &Job, workers: &Workers<C>, now: Instant) -> Home {
        let Some(lane) = job.lane.as_ref().filter(|_| !job.is_suspect()) else { return Home::None };
        let home = self.homes.get(&(job.border, lane.lane)).filter(|(_, task)| Some(*task) == lane.after);
        let Some((number, worker)) = home.and_then(|(number, _)| Some((*number, workers.all.get(number)?))) else {
            return Home::None;
        };
        let threads = workers.threads();
        if worker.has_capacity(threads, false, 0) {
            return Home::Free(number);
        }
        let opening = self.opening.get(&job.border).copied().unwrap_or_default();
        let patience = opening.saturating_mul(2).clamp(LEAST_PATIENCE, MOST_PATIENCE);
        // If every worker is busy, no other worker could start sooner.
        let idle =
            workers.all.values().any(|other| other.has_capacity(threads, false, 0) && other.tasks.len() < threads);
        let is_soon = !idle || now.saturating_duration_since(job.since) < patience;
        if worker.stays() && is_soon { Home::Busy } else { Home::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::remote::{How, Point, Segment};
    use crate::workers::budget::Plan;
    use crate::workers::options::MpOptions;
    use crate::workers::pool::queue::Queue;
    use crate::workers::pool::queue::tests::Nobody;
    use crate::workers::pool::worker::Worker;
    use crate::workers::processes::Processes;

    /// Returns workers 1 to `last`, each with two threads.
    fn workers(last: u64) -> Workers<Processes> {
        let options = MpOptions::auto().workers(last as usize).threads_per_worker(2).ram_budget(1 << 30);
        let mut workers = Workers::new(&Plan::new(&options, 2, 0).unwrap(), &options, Vec::new());
        workers.all.extend((1..=last).map(|number| (number, Worker::new(0))));
        workers
    }

    fn job(lane: u64, after: Option<u64>) -> Job {
        let mut queue = Queue::default();
        let from = Segment { lane, after, at: Point { state: "{}".into(), skip: 0 } };
        queue.submit(0.into(), 0..10, How::Lane { from, due: 0 }, Box::new(Nobody(true)));
        queue.pop().unwrap()
    }

    #[test]
    fn a_lane_goes_to_the_worker_that_has_it_open() {
        let mut workers = workers(3);
        workers.all.values_mut().for_each(|worker| worker.ready = true);
        let mut lanes = Lanes::default();
        lanes.read(&job(5, Some(70)), 2, Duration::ZERO);
        assert_eq!(lanes.home(&job(5, Some(70)), &workers, Instant::now()), Home::Free(2));
        // The lane has moved to another worker, or was never open in this worker.
        assert_eq!(lanes.home(&job(5, Some(71)), &workers, Instant::now()), Home::None);
        assert_eq!(lanes.home(&job(5, None), &workers, Instant::now()), Home::None);
        assert_eq!(lanes.home(&job(6, Some(70)), &workers, Instant::now()), Home::None);
        let mut suspect = job(5, Some(70));
        suspect.blame(3, true);
        assert_eq!(lanes.home(&suspect, &workers, Instant::now()), Home::None);
    }

    #[test]
    fn a_busy_home_is_waited_for_unless_somebody_is_idle_for_long() {
        let mut workers = workers(2);
        let waiting = job(5, Some(70));
        let home = |lanes: &Lanes, workers: &_, time| lanes.home(&waiting, workers, waiting.since + time);
        let lanes = |opened| {
            let mut lanes = Lanes::default();
            lanes.read(&job(5, Some(70)), 2, opened);
            lanes
        };
        let ms = Duration::from_millis;
        assert_eq!(home(&lanes(ms(1)), &workers, Duration::from_secs(600)), Home::Busy, "nobody has time");
        workers.all.get_mut(&1).unwrap().ready = true;
        // Twice the opening time, within the bounds.
        for (opened, patience) in
            [(ms(0), LEAST_PATIENCE), (ms(2), LEAST_PATIENCE), (ms(100), ms(200)), (Duration::MAX, MOST_PATIENCE)]
        {
            assert_eq!(home(&lanes(opened), &workers, patience - ms(1)), Home::Busy, "{opened:?}");
            assert_eq!(home(&lanes(opened), &workers, patience), Home::None, "{opened:?}");
        }
        workers.all.get_mut(&2).unwrap().leaving = true;
        assert_eq!(home(&lanes(ms(100)), &workers, Duration::ZERO), Home::None);
    }
}
