//! Assignment of queued jobs to workers, with memory.

use std::ops::Range;
use std::time::Instant;

use super::Coordinator;
use crate::cx::{Cause, Hold};
use crate::error::{Error, ErrorKind};
use crate::units::Bytes;
use crate::workers::control::{Task, ToWorker};
use crate::workers::pool::carrier::{Carrier, Link, Room};
use crate::workers::pool::job::Job;
use crate::workers::pool::lanes::Home;
use crate::workers::pool::worker::Running;

impl<C: Carrier> Coordinator<C> {
    /// Assigns jobs until no job, no suitable free worker or no memory is left.
    pub(super) fn dispatch(&mut self) {
        (self.memory.recheck, self.memory.is_short) = (None, false);
        let hold = self.dispatch_all();
        self.queue.set_hold(hold, &self.recorder);
    }

    /// Assigns all possible jobs; returns the cause if a job waits although a worker might be free.
    fn dispatch_all(&mut self) -> Option<Hold> {
        let (mut from, shared, now) = (0, self.is_shared(), Instant::now());
        while let Some(job) = self.queue.first(from) {
            let seq = job.seq;
            if job.need as u64 > self.plan.max_element_bytes {
                self.reject_oversized(seq);
                continue;
            }
            let cap = if job.crashes.wide { self.plan.solo_heap_bytes } else { 0 };
            let number = match self.workers.home(job, now) {
                Home::Free(number) => number,
                Home::Busy => {
                    from = seq + 1;
                    continue;
                }
                Home::None => match self.workers.free_for(job, cap, shared) {
                    Some(number) => number,
                    // The remaining workers are busy with other tasks.
                    None => return self.workers.is_replacing().then(|| Hold::of_all(Cause::Death)),
                },
            };
            let demand = &self.tuning.figures.demand;
            let Some(room) = self.memory.reserve(number, job, &self.workers, demand) else {
                self.memory.is_short = true;
                let idle = self.workers.idle();
                return Some(Hold { cause: if idle < 1.0 { Cause::Memory } else { Cause::Leases }, idle });
            };
            let job = self.queue.take(seq)?;
            self.assign(number, job, room);
        }
        None
    }

    /// Fails a job whose next element is larger than the maximum.
    fn reject_oversized(&mut self, seq: u64) {
        let Some(mut job) = self.queue.take(seq) else { return };
        let error = Error::new(
            ErrorKind::Data,
            format!(
                "an element of {} does not fit: max_element is {}, of a slab of {}",
                Bytes(job.need as u64),
                Bytes(self.plan.max_element_bytes),
                Bytes(self.plan.slab_bytes)
            ),
        );
        job.deliver
            .fail(error.index(job.left.start).help("raise `max_element` or `ram_budget`, or make elements smaller"));
    }

    fn assign(&mut self, number: u64, mut job: Job, room: C::Room) {
        self.queue.split_groups(&mut job);
        let id = self.queue.task_id();
        let Some(worker) = self.workers.all.get_mut(&number) else { return self.queue.put(job) };
        let range = job.next_task();
        let (border, listed, lane, fed) = (job.border, job.listed(&range), job.lane.clone(), job.fed.clone());
        let (groups_from, alone) = (job.groups.map(|groups| groups.first), job.is_suspect());
        let Range { start, end } = range;
        let task = Task { id, border, start, end, listed, groups_from, lane, fed, alone, extent: room.extent() };
        if let Some(link) = &worker.link {
            // If sending fails, the end of the worker is reported later and the task returns to the queue.
            let _ = link.send(&ToWorker::Task(task));
        }
        worker.tasks.insert(id, Running { job, asked: end - start, room, since: Instant::now() });
    }
}
