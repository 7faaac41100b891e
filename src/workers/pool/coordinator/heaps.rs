//! The workers' part of the budget: one pool, of which each has its cap from before it starts until it is reaped.

use std::time::{Duration, Instant};

use super::Coordinator;
use crate::cx::WorkerMemory;
use crate::units::Bytes;
use crate::workers::pool::carrier::{Carrier, Link};
use crate::workers::pool::crew::Member;

/// A worker's memory is looked at so often at most: it takes some 20 us.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// All that workers use is measured once in so many ticks: the kernel walks their page tables.
const MEASURED_EVERY: u32 = 5;

impl<C: Carrier> Coordinator<C> {
    /// Whether the element in front is for a worker that has the whole pool, or such a worker is at it.
    fn is_lone(&mut self) -> bool {
        self.queue.first(0).is_some_and(|job| job.wide)
            || self.crew.values().any(|member| member.tasks.values().any(|task| task.job.wide))
    }

    /// The number of workers that there should be now, and the cap of those that are started.
    pub(super) fn staffing(&mut self) -> (usize, u64) {
        let lone = self.is_lone();
        (if lone { 1 } else { self.wanted }, self.cap(lone))
    }

    /// The cap of a worker: of one that is to have the whole pool, or of one among others.
    fn cap(&self, lone: bool) -> u64 {
        if lone { self.plan.solo_heap_bytes } else { self.plan.share(self.wanted) }
    }

    /// Whether the pool has room for one more worker.
    pub(super) fn has_heap(&self, cap: u64) -> bool {
        let extra = self.plan.needs.beside_heap_bytes;
        let heap = |member: &Member<C>| member.cap + extra;
        self.crew.values().map(heap).sum::<u64>().saturating_add(cap + extra) <= self.plan.pool_bytes
    }

    /// Sends those home whose caps leave too little for the others that there should be, or who have too little themselves.
    pub(super) fn make_room(&mut self) {
        let lone = self.is_lone();
        let share = self.cap(lone);
        for member in self.crew.values_mut().filter(|member| !member.leaving && member.killed.is_none()) {
            if lone {
                member.leaving = member.cap < share;
            } else if member.cap > share && member.ready {
                // One that is not ready may not have taken its own cap yet, and would take it afterwards.
                match member.link.as_ref().is_some_and(|link| link.lower_cap(share)) {
                    true => member.cap = share,
                    false => member.leaving = true,
                }
            }
        }
    }

    /// Looks how much memory a worker has, where others may have to do with as much.
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

    /// Looks now and then whether all that runs in workers uses more than the budget, and says so once: what is limited is
    /// the private memory of each process, and code in a worker may share memory or start processes.
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
                "workers and what they started use {}, and ram_budget is {}: it does not limit shared memory that code in \
                 a worker maps, nor processes that it starts",
                Bytes(used),
                Bytes(self.plan.budget_bytes)
            );
        }
    }

    /// Has the memory of workers recorded.
    pub(super) fn tell_memory(&mut self) {
        // A small part of the time, however many there are.
        if self.told_memory.elapsed() < LOOK_EVERY / 2 * self.crew.len() as u32 {
            return;
        }
        self.told_memory = Instant::now();
        let reports = self.crew.values().filter_map(|member| member.link.as_ref()?.report());
        // On another machine memory is that machine's.
        let heaps = reports.filter(|worker| worker.host.is_none()).map(|worker| worker.heap_bytes).sum();
        let shared = self.carrier.memory().used_bytes;
        self.recorder.workers_use(WorkerMemory { heaps, shared, budget: self.plan.budget_bytes });
    }

    /// Computes how many workers have room for half as much again as any was seen to need.
    pub(super) fn most_workers(&self) -> usize {
        self.plan.workers_with(self.peak / 2 * 3)
    }
}
