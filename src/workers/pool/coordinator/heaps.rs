//! The workers' part of the budget: one pool, from which each worker holds its cap from before its start until it is
//! reaped.

use std::time::{Duration, Instant};

use super::Coordinator;
use crate::cx::WorkerMemory;
use crate::units::Bytes;
use crate::workers::pool::carrier::{Carrier, Link};
use crate::workers::pool::crew::Member;

/// Minimum interval between two readings of a worker's memory; a reading takes about 20 us.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Ticks between two measurements of all workers' memory, for which the kernel walks their page tables.
const MEASURED_EVERY: u32 = 5;

impl<C: Carrier> Coordinator<C> {
    /// Returns true if the first job is for a worker with the whole pool, or such a worker has a task.
    fn is_lone(&mut self) -> bool {
        self.queue.first(0).is_some_and(|job| job.wide)
            || self.crew.values().any(|member| member.tasks.values().any(|task| task.job.wide))
    }

    /// Returns the number of workers that should exist now, and the cap of new workers.
    pub(super) fn staffing(&mut self) -> (usize, u64) {
        let lone = self.is_lone();
        (if lone { 1 } else { self.wanted }, self.cap(lone))
    }

    /// Returns the cap of a worker: the whole pool if `lone`, otherwise its share.
    fn cap(&self, lone: bool) -> u64 {
        if lone { self.plan.solo_heap_bytes } else { self.plan.share(self.wanted) }
    }

    /// Returns true if the pool has room for one more worker.
    pub(super) fn has_heap(&self, cap: u64) -> bool {
        let extra = self.plan.needs.beside_heap_bytes;
        let heap = |member: &Member<C>| member.cap + extra;
        self.crew.values().map(heap).sum::<u64>().saturating_add(cap + extra) <= self.plan.pool_bytes
    }

    /// Lowers caps above the share. Dismisses workers whose cap cannot be lowered, or is too small if one worker needs
    /// the whole pool.
    pub(super) fn make_room(&mut self) {
        let lone = self.is_lone();
        let share = self.cap(lone);
        for member in self.crew.values_mut().filter(|member| !member.leaving && member.killed.is_none()) {
            if lone {
                member.leaving = member.cap < share;
            } else if member.cap > share && member.ready {
                // A worker that is not ready may not have set its cap yet, and would set the old value later.
                match member.link.as_ref().is_some_and(|link| link.lower_cap(share)) {
                    true => member.cap = share,
                    false => member.leaving = true,
                }
            }
        }
    }

    /// Reads a worker's memory use, if more workers may have to share the pool.
    pub(super) fn look_at_heap(&mut self, number: u64) {
        if self.plan.start_workers == self.plan.workers {
            return;
        }
        let Some(member) = self.crew.get_mut(&number) else { return };
        if member.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        member.looked = Some(Instant::now());
        let bytes = member.link.as_ref().and_then(Link::capped_bytes);
        self.peak = self.peak.max(bytes.unwrap_or(0));
    }

    /// Measures from time to time whether workers use more than the budget, and warns once. Limits apply to the private
    /// memory of each process, but code in a worker may share memory or start processes.
    pub(super) fn measure(&mut self) {
        if self.told_of_more || self.measured.elapsed() < MEASURED_EVERY * self.options.tick {
            return;
        }
        self.measured = Instant::now();
        let used: u64 = self.crew.values().filter_map(|member| member.link.as_ref()?.bytes_here()).sum();
        if used > self.plan.budget_bytes {
            self.told_of_more = true;
            self.recorder.note("times that workers were seen to use more than ram_budget", 1);
            tracing::warn!(
                "workers and the processes that they started use {}, but ram_budget is {}: it does not limit shared memory \
                 that code in a worker maps, nor processes that it starts",
                Bytes(used),
                Bytes(self.plan.budget_bytes)
            );
        }
    }

    /// Records the memory of workers.
    pub(super) fn tell_memory(&mut self) {
        // The interval grows with the number of workers, so the cost stays a small share of the time.
        if self.told_memory.elapsed() < LOOK_EVERY / 2 * self.crew.len() as u32 {
            return;
        }
        self.told_memory = Instant::now();
        let reports = self.crew.values().filter_map(|member| member.link.as_ref()?.report());
        // The memory of remote workers belongs to other machines.
        let heaps = reports.filter(|worker| worker.host.is_none()).map(|worker| worker.heap_bytes).sum();
        let shared = self.carrier.memory().used_bytes;
        self.recorder.workers_use(WorkerMemory { heaps, shared, budget: self.plan.budget_bytes });
    }

    /// Returns the number of workers that have room for 1.5 times the observed peak heap.
    pub(super) fn most_workers(&self) -> usize {
        self.plan.workers_with(self.peak / 2 * 3)
    }
}
