//! Memory of a pool: shared memory for answers, and the part of the budget that workers share.
//!
//! Workers share one part of the budget. Each worker holds its cap from before its start until it is reaped.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::carrier::{Carrier, Link};
use super::drought::Drought;
use super::job::Job;
use super::worker::Worker;
use super::workers::Workers;
use crate::cx::{Recorder, WorkerMemory};
use crate::error::{Error, ErrorKind};
use crate::exec::Demand;
use crate::exec::remote::Border;
use crate::units::Bytes;
use crate::workers::budget::Plan;
use crate::workers::slab::PAGE;

/// Minimum interval between two readings of a worker's memory; a reading takes about 20 us.
const READ_EVERY: Duration = Duration::from_millis(20);
/// Ticks between two measurements of all workers' memory, for which the kernel walks their page tables.
const MEASURED_EVERY: u32 = 5;

/// The budget, learned sizes, and measurements of memory in use.
pub(super) struct Memory<C: Carrier> {
    carrier: Arc<C>,
    pub(super) plan: Plan,
    /// Learned bytes per index, by border.
    index_bytes: HashMap<Border, f64>,
    drought: Drought,
    /// Delay before the next check whether the drought continues.
    pub(super) recheck: Option<Duration>,
    /// Whether a worker is free, but no memory for the next task.
    pub(super) is_short: bool,
    /// Peak bytes of private memory of a worker.
    peak_heap_bytes: u64,
    /// Time of the last measurement of all workers' memory.
    measured: Instant,
    /// Time at which the workers' memory was last recorded.
    recorded: Instant,
    /// Whether the warning about copied elements was given.
    warned_of_copies: bool,
    /// Whether the warning about the budget was given.
    warned_of_excess: bool,
}

impl<C: Carrier> Memory<C> {
    pub(super) fn new(carrier: Arc<C>, plan: Plan) -> Self {
        let now = Instant::now();
        Self {
            carrier,
            plan,
            index_bytes: HashMap::new(),
            drought: Drought::new(now),
            recheck: None,
            is_short: false,
            peak_heap_bytes: 0,
            measured: now,
            recorded: now,
            warned_of_copies: false,
            warned_of_excess: false,
        }
    }

    /// Updates the learned size of an index.
    pub(super) fn learn(&mut self, border: Border, bytes: f64) {
        self.index_bytes.entry(border).and_modify(|known| *known += (bytes - *known) / 4.0).or_insert(bytes);
    }

    /// Reserves memory for the next task of worker `number`, from the job at the head of the queue. Later jobs wait, so
    /// the head is always served first.
    pub(super) fn reserve(&mut self, number: u64, job: &Job, workers: &Workers<C>, demand: &Demand) -> Option<C::Room> {
        let index = self.index_bytes.get(&job.border).copied().unwrap_or(0.0);
        // Room for the smallest result; unused room is returned after the write.
        let one = (index * 1.02 * job.least() as f64) as usize + 4096;
        let all = ((index * 1.25 * (job.left.end - job.left.start) as f64) as usize)
            .saturating_add(4096)
            .min(self.plan.part_bytes(workers.threads() * workers.target));
        let size = all.max(one.min(self.plan.max_element_bytes as usize)).max(job.need).max(PAGE);
        let place = workers.all.get(&number)?.place;
        let room = self.carrier.room(size, place);
        if room.is_some() || workers.tasks() > 0 {
            self.drought.over(demand);
            return room;
        }
        // No task is in progress that could free memory. Views may be dropped soon, or held forever.
        self.recheck = self.drought.goes_on(Instant::now(), demand);
        if self.recheck.is_some() {
            return None;
        }
        if !mem::replace(&mut self.warned_of_copies, true) {
            let slab = Bytes(self.plan.slab_bytes);
            tracing::warn!(
                "views hold all of {slab} of shared memory, so elements are copied: keep fewer, or raise `ram_budget`"
            );
        }
        self.carrier.last_room(self.plan.max_element_bytes as usize, place)
    }

    /// Returns the error for a worker that has written to elements after delivery, because their holders now see
    /// changed data.
    pub(super) fn check_leases(&self, workers: &Workers<C>) -> Option<Error> {
        let (place, extent) = self.carrier.spoilt()?;
        let found = workers.all.iter().find(|(_, worker)| worker.place == place);
        let who = match found.and_then(|(number, worker)| Some((number, worker.link.as_ref()?.who()))) {
            Some((number, who)) => format!("worker {number} ({who})"),
            None => "a worker that has ended".to_owned(),
        };
        let what = format!("{who} wrote to memory of elements that it had handed over: {extent}");
        Some(Error::new(ErrorKind::Worker, what).help(
            "native code in the pipeline writes through a wild pointer: evaluate it with `workers: 0` under a debugger",
        ))
    }

    /// Returns the cap of each of `workers` workers: everything if a `lone` worker runs, otherwise a share.
    pub(super) fn cap(&self, workers: usize, lone: bool) -> u64 {
        if lone { self.plan.solo_heap_bytes } else { self.plan.share(workers) }
    }

    /// Returns true if the budget has room for one more worker. Leaving workers hold their memory until they are
    /// reaped.
    pub(super) fn has_heap(&self, workers: &Workers<C>, cap: u64) -> bool {
        let beside = self.plan.needs.beside_heap_bytes;
        let heaps: u64 = workers.all.values().map(|worker| worker.cap + beside).sum();
        heaps.saturating_add(cap + beside) <= self.plan.pool_bytes
    }

    /// Reads a worker's memory use, if more workers may have to share the budget.
    pub(super) fn observe_heap(&mut self, worker: &mut Worker<C>) {
        if self.plan.start_workers == self.plan.workers || worker.measured.is_some_and(|at| at.elapsed() < READ_EVERY) {
            return;
        }
        worker.measured = Some(Instant::now());
        let bytes = worker.link.as_ref().and_then(Link::capped_bytes);
        self.peak_heap_bytes = self.peak_heap_bytes.max(bytes.unwrap_or(0));
    }

    /// Returns the number of workers that have room for 1.5 times the observed peak heap.
    pub(super) fn most_workers(&self) -> usize {
        self.plan.workers_with(self.peak_heap_bytes / 2 * 3)
    }

    /// Measures from time to time whether workers use more than the budget, and warns once. Limits apply to the private
    /// memory of each process, but code in a worker may share memory or start processes.
    pub(super) fn check_budget(&mut self, workers: &Workers<C>, recorder: &Recorder, tick: Duration) {
        if self.warned_of_excess || self.measured.elapsed() < MEASURED_EVERY * tick {
            return;
        }
        self.measured = Instant::now();
        let used: u64 = workers.links().filter_map(Link::bytes_here).sum();
        if used > self.plan.budget_bytes {
            self.warned_of_excess = true;
            recorder.note("times that workers were seen to use more than ram_budget", 1);
            tracing::warn!(
                "workers and the processes that they started use {}, but ram_budget is {}: it does not limit shared memory \
                 that code in a worker maps, nor processes that it starts",
                Bytes(used),
                Bytes(self.plan.budget_bytes)
            );
        }
    }

    /// Records the memory of workers.
    pub(super) fn record(&mut self, workers: &Workers<C>, recorder: &Recorder) {
        // The interval grows with the number of workers, so the cost stays a small share of the time.
        if self.recorded.elapsed() < READ_EVERY / 2 * workers.all.len() as u32 {
            return;
        }
        self.recorded = Instant::now();
        // The memory of remote workers belongs to other machines.
        let here = workers.links().filter_map(Link::report).filter(|worker| worker.host.is_none());
        let heaps = here.map(|worker| worker.heap_bytes).sum();
        let shared = self.carrier.memory().used_bytes;
        recorder.workers_use(WorkerMemory { heaps, shared, budget: self.plan.budget_bytes });
    }
}
