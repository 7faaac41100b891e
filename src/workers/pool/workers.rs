//! The workers of a pool, from their starts to their ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::carrier::{Carrier, Link, Recruit};
use super::job::{Job, Late};
use super::lanes::{Home, Lanes};
use super::respawn::Respawn;
use super::worker::{Running, Stale, Worker};
use crate::exec::WorkerReport;
use crate::workers::budget::Plan;
use crate::workers::control::{Begin, ToWorker};
use crate::workers::options::MpOptions;

/// Workers that are starting, running or leaving.
pub(super) struct Workers<C: Carrier> {
    /// Workers by number, until they are reaped.
    pub(super) all: BTreeMap<u64, Worker<C>>,
    /// Target number of workers, at most `most`.
    pub(super) target: usize,
    most: usize,
    /// First message to each worker.
    pub(super) begin: Begin,
    /// Workers that have lanes open.
    pub(super) lanes: Lanes,
    /// Threads that start workers.
    pub(super) starts: Vec<JoinHandle<()>>,
    pub(super) respawn: Respawn,
    next_number: u64,
    /// Number of workers that died and were replaced.
    pub(super) replaced: u64,
    began: Instant,
    /// Time until the first worker was ready, and time to build its pipeline within it.
    pub(super) first_ready: (Duration, Duration),
}

impl<C: Carrier> Workers<C> {
    pub(super) fn new(plan: &Plan, options: &MpOptions, pipeline: Vec<String>) -> Self {
        let begin = Begin {
            threads: plan.threads_per_worker as u32,
            active: plan.active_threads as u32,
            keep: if options.arrays_in_slab { plan.keep() } else { 0 },
            counted: options.counted,
            one_of_many: plan.workers > 1,
            pipeline,
        };
        Self {
            all: BTreeMap::new(),
            target: plan.start_workers,
            most: plan.workers,
            begin,
            lanes: Lanes::default(),
            starts: Vec::new(),
            respawn: Respawn::default(),
            next_number: 0,
            replaced: 0,
            began: Instant::now(),
            first_ready: (Duration::ZERO, Duration::ZERO),
        }
    }

    /// Returns the number of active threads of each worker.
    pub(super) fn threads(&self) -> usize {
        self.begin.active as usize
    }

    /// Returns the number of workers that are not leaving.
    pub(super) fn staying(&self) -> usize {
        self.all.values().filter(|worker| !worker.leaving).count()
    }

    /// Returns the number of tasks in progress.
    pub(super) fn tasks(&self) -> usize {
        self.all.values().map(|worker| worker.tasks.len()).sum()
    }

    /// Returns the share of all workers' threads that have no task.
    pub(super) fn idle(&self) -> f64 {
        let busy: usize = self.all.values().map(|worker| worker.tasks.len().min(self.threads())).sum();
        1.0 - busy as f64 / (self.all.len() * self.threads()).max(1) as f64
    }

    /// Returns true if a worker has died and its replacement is not ready.
    pub(super) fn is_replacing(&self) -> bool {
        self.replaced > 0 && (self.staying() < self.target || self.all.values().any(|worker| !worker.ready))
    }

    /// Returns true if workers are missing, starting or leaving.
    pub(super) fn is_changing(&self, now: Instant) -> bool {
        self.staying() != self.target || self.all.values().any(|worker| worker.leaving || worker.is_starting(now))
    }

    /// Returns the machine of a worker; empty for a worker on this machine.
    pub(super) fn node(&self, number: u64) -> String {
        self.all.get(&number).and_then(|worker| worker.link.as_ref()).map(Link::node).unwrap_or_default()
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &C::Link> {
        self.all.values().filter_map(|worker| worker.link.as_ref())
    }

    /// Returns the figures of each connected worker.
    pub(super) fn reports(&self) -> impl Iterator<Item = WorkerReport> {
        self.all.iter().filter_map(|(&number, worker)| {
            let known = worker.link.as_ref()?.report()?;
            Some(WorkerReport { number, heap_limit_bytes: worker.cap, tasks: worker.finished, ..known })
        })
    }

    /// Returns the lowest free place.
    pub(super) fn free_place(&self) -> Option<usize> {
        let taken = |place: &usize| self.all.values().any(|worker| worker.place == *place);
        (0..self.most).find(|place| !taken(place))
    }

    /// Runs `start` on a separate thread: a start takes milliseconds, or the time-out.
    ///
    /// # Errors
    /// If the system refuses the thread.
    pub(super) fn start(
        &mut self,
        place: usize,
        cap: u64,
        start: impl FnOnce(Recruit) + Send + 'static,
    ) -> io::Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        self.all.insert(number, Worker { place, ..Worker::new(cap) });
        self.starts.retain(|thread| !thread.is_finished());
        let thread = Builder::new().name("gristmill-start".into());
        self.starts.push(thread.spawn(move || start(Recruit { number, place, cap }))?);
        Ok(())
    }

    /// Adds the link of a started worker. A worker that has already ended is no longer listed.
    pub(super) fn connected(&mut self, number: u64, link: C::Link) {
        let Some(worker) = self.all.get_mut(&number) else { return };
        // If sending fails, the end of the worker is reported later.
        let _ = link.send(&ToWorker::Begin(self.begin.clone()));
        worker.link = Some(link);
    }

    /// Records that a worker has built its pipeline within `built`.
    pub(super) fn ready(&mut self, number: u64, built: Duration) {
        let Some(worker) = self.all.get_mut(&number) else { return };
        worker.ready = true;
        if self.first_ready.0.is_zero() {
            self.first_ready = (self.began.elapsed(), built);
        }
        self.respawn.started(worker.started.elapsed());
    }

    /// Sets the number of workers. Surplus workers leave after their tasks.
    pub(super) fn resize(&mut self, workers: usize) {
        self.target = workers.clamp(1, self.most);
        let surplus = self.staying().saturating_sub(self.target);
        for worker in self.all.values_mut().rev().filter(|worker| !worker.leaving).take(surplus) {
            worker.leaving = true;
        }
    }

    /// Sets the number of active threads of every worker.
    pub(super) fn activate(&mut self, threads: usize) {
        self.begin.active = threads.clamp(1, self.begin.threads as usize) as u32;
        for link in self.links() {
            let _ = link.send(&ToWorker::Active(self.begin.active));
        }
    }

    /// Lowers caps above `cap`. Workers leave if their cap cannot be lowered, or is too small for the work of a `lone`
    /// worker.
    pub(super) fn fit_heaps(&mut self, cap: u64, lone: bool) {
        for worker in self.all.values_mut().filter(|worker| worker.stays()) {
            if lone {
                worker.leaving = worker.cap < cap;
            } else if worker.cap > cap && worker.ready {
                // A worker that is not ready may not have set its cap yet, and would set the old value later.
                match worker.link.as_ref().is_some_and(|link| link.lower_cap(cap)) {
                    true => worker.cap = cap,
                    false => worker.leaving = true,
                }
            }
        }
    }

    /// Stops leaving workers that have no tasks.
    pub(super) fn stop_leaving(&mut self) {
        for worker in self.all.values_mut().filter(|worker| worker.leaving && !worker.stop_sent) {
            if let Some(link) = worker.link.as_ref().filter(|_| worker.tasks.is_empty()) {
                // If sending fails, the end of the worker is reported later.
                let _ = link.send(&ToWorker::Stop);
                worker.stop_sent = true;
            }
        }
    }

    pub(super) fn kill(&mut self, number: u64, reason: String) {
        let Some(worker) = self.all.get_mut(&number) else { return };
        worker.kill_reason.get_or_insert(reason);
        if let Some(link) = &worker.link {
            link.kill();
        }
    }

    /// Kills a worker after an invalid answer. The worker keeps the task and its memory until it is reaped.
    pub(super) fn reject(&mut self, number: u64, task: u64, running: Running<C>, reason: String) {
        if let Some(worker) = self.all.get_mut(&number) {
            worker.tasks.insert(task, running);
        }
        self.kill(number, reason);
    }

    /// Kills workers with tasks beyond the deadline.
    pub(super) fn check_deadlines(&mut self, deadline: Duration) {
        let now = Instant::now();
        let is_late = |worker: &Worker<C>| worker.since().any(|since| is_overdue(since, now, Some(deadline)));
        let late = self.all.iter().filter(|(_, worker)| worker.kill_reason.is_none() && is_late(worker));
        for number in late.map(|(&number, _)| number).collect::<Vec<_>>() {
            self.kill(number, format!("it took longer than the deadline of {deadline:?}"));
        }
    }

    /// Requests the counts of all ready workers; returns their numbers.
    pub(super) fn request_counts(&self) -> BTreeSet<u64> {
        let ready = self.all.iter().filter(|(_, worker)| worker.ready);
        let sent = |worker: &Worker<C>| worker.link.as_ref().is_some_and(|link| link.send(&ToWorker::Tell).is_ok());
        ready.filter(|(_, worker)| sent(worker)).map(|(&number, _)| number).collect()
    }

    /// Returns the worker and the ID of each task that is late after `late`.
    pub(super) fn late_tasks(&self, late: Duration) -> Vec<(u64, u64)> {
        let now = Instant::now();
        let is_late = |task: &Running<C>| task.job.is_late(now.saturating_duration_since(task.since), late);
        self.running().filter(|(_, _, task)| is_late(task)).map(|(number, id, _)| (number, id)).collect()
    }

    /// Returns all tasks in progress, each with its worker and its ID.
    fn running(&self) -> impl Iterator<Item = (u64, u64, &Running<C>)> {
        self.all.iter().flat_map(|(&number, worker)| worker.tasks.iter().map(move |(&id, task)| (number, id, task)))
    }

    /// Takes the job of a task away from its worker; the worker's answer still counts if it arrives first.
    pub(super) fn set_aside(&mut self, number: u64, task: u64) -> Option<Job> {
        let worker = self.all.get_mut(&number)?;
        let Running { job, asked, room, since } = worker.tasks.remove(&task)?;
        worker.stale.insert(task, Stale { seq: job.seq, start: job.left.start, asked, room, since });
        Some(job)
    }

    /// Takes job `seq` away from its worker, if the job has delivered nothing beyond index `start`.
    pub(super) fn take_job(&mut self, seq: u64, start: u64) -> Option<Job> {
        let holder = self.running().find(|(_, _, task)| task.job.is_at(seq, start));
        let (number, id) = holder.map(|(number, id, _)| (number, id))?;
        self.set_aside(number, id)
    }

    /// Returns the worker that has the lane of `job` open, and whether the worker is free.
    pub(super) fn home(&self, job: &Job, now: Instant) -> Home {
        self.lanes.home(job, self, now)
    }

    /// Returns the free worker with the fewest tasks for `job`, among workers with a heap of at least `cap`. A job that
    /// was late prefers another machine. If workers are `shared`, prefers the common worker of all passes, if that
    /// worker is free.
    pub(super) fn free_for(&self, job: &Job, cap: u64, shared: bool) -> Option<u64> {
        let threads = self.threads();
        let is_other = job.avoid.as_ref().map(|late| self.others(late));
        let free = self.all.iter().filter(|(_, worker)| worker.has_capacity(threads, job.is_suspect(), cap));
        let free = free.filter(|(number, worker)| is_other.as_ref().is_none_or(|is_other| is_other(**number, worker)));
        if shared && !job.is_suspect() && job.avoid.is_none() {
            // Elements that other passes have evaluated or are evaluating need no work, so a few more tasks may queue
            // there.
            let common = self.common(job).filter(|(_, worker)| worker.has_capacity(2 * threads + 1, false, cap));
            if let Some((&number, _)) = common {
                return Some(number);
            }
        }
        // Remote machines each have a separate link, so the load is spread over all. Locally, the first worker has warm
        // caches.
        let finished = |worker: &Worker<C>| if C::SPREADS { worker.finished } else { 0 };
        free.min_by_key(|(_, worker)| (worker.tasks.len(), finished(worker))).map(|(&number, _)| number)
    }

    /// Returns true if another worker is free for a `late` task.
    pub(super) fn has_other(&self, late: &Late) -> bool {
        let (is_other, threads) = (self.others(late), self.threads());
        let mut free = self.all.iter().filter(|(_, worker)| worker.has_capacity(threads, false, 0));
        free.any(|(number, worker)| *number != late.worker && is_other(*number, worker))
    }

    /// Returns a predicate for workers that may take a `late` task: workers on other machines if there are any,
    /// otherwise all other workers. A lone worker may take its own task again.
    fn others<'a>(&self, late: &'a Late) -> impl Fn(u64, &Worker<C>) -> bool + use<'a, C> {
        let elsewhere = |worker: &Worker<C>| worker.link.as_ref().is_some_and(|link| link.node() != late.machine);
        let (any_elsewhere, alone) = (self.all.values().any(elsewhere), self.all.len() == 1);
        move |number, worker| if any_elsewhere { elsewhere(worker) } else { alone || number != late.worker }
    }

    /// Returns the worker to which every pass sends this `job`: the worker with the highest hash of its place and the
    /// job's first index.
    fn common(&self, job: &Job) -> Option<(&u64, &Worker<C>)> {
        let range = job.next_task();
        let first = job.listed(&(range.start..range.start + 1)).and_then(|listed| listed.first().copied());
        let first = first.unwrap_or(range.start);
        let staying = self.all.iter().filter(|(_, worker)| worker.ready && worker.stays());
        staying.max_by_key(|(_, worker)| mixed(first, worker.place as u64))
    }
}

/// Returns true if a task that was sent at `since` is beyond the deadline at `now`.
pub(super) fn is_overdue(since: Instant, now: Instant, deadline: Option<Duration>) -> bool {
    deadline.is_some_and(|deadline| now.saturating_duration_since(since) > deadline)
}

/// Returns a hash that is identical on every machine: the last steps of SplitMix64.
fn mixed(first: u64, place: u64) -> u64 {
    let z = first.wrapping_add((place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_overdue_just_after_its_deadline_and_never_without_one() {
        let (since, ms) = (Instant::now(), Duration::from_millis);
        for (time, deadline, overdue) in [
            (0, Some(1000), false),
            (999, Some(1000), false),
            (1000, Some(1000), false),
            (1001, Some(1000), true),
            (1, Some(0), true),
            (1_000_000_000, None, false),
        ] {
            assert_eq!(is_overdue(since, since + ms(time), deadline.map(ms)), overdue, "{time} of {deadline:?}");
        }
        assert!(!is_overdue(since + ms(5), since, Some(ms(0))), "sent since the clock was read");
    }
}
