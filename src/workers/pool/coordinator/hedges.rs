//! Hedging: a task that takes much longer than others also goes to a second worker, preferably on another machine. The
//! first answer counts.

use super::Coordinator;
use crate::workers::pool::carrier::Carrier;
use crate::workers::pool::job::Late;
use crate::workers::pool::worker::{Running, Stale};

impl<C: Carrier> Coordinator<C> {
    /// Puts the jobs of late tasks back into the queue for free workers, preferably on other machines.
    pub(super) fn hedge(&mut self) {
        let Some(late) = self.options.hedge.and_then(|factor| self.queue.answer_times.late(factor)) else { return };
        for (number, task) in self.workers.late_tasks(late) {
            let late = Late { machine: self.workers.node(number), worker: number };
            if self.workers.has_other(&late)
                && let Some(mut job) = self.workers.set_aside(number, task)
            {
                self.recorder.note("ranges asked of another worker, because they were late", 1);
                job.avoid = Some(late);
                self.queue.put(job);
            }
        }
    }

    /// Returns the set-aside task with its job, if no other answer has arrived.
    pub(super) fn recall(&mut self, stale: Stale<C>) -> Option<Running<C>> {
        let Stale { seq, start, asked, room, since } = stale;
        let is_waiting = self.queue.get(seq).is_some_and(|job| job.is_at(seq, start));
        let job = if is_waiting { self.queue.take(seq) } else { self.workers.take_job(seq, start) };
        job.map(|job| Running { job, asked, room, since })
    }
}
