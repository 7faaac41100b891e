//! Answers of workers to their tasks.

use std::time::Duration;

use super::Coordinator;
use crate::cx::{Evaluation, EvaluatorId};
use crate::exec::remote::{Delivery, Evaluated};
use crate::units::Bytes;
use crate::workers::control::{Done, Need};
use crate::workers::pool::carrier::{Carrier, Room};
use crate::workers::pool::worker::Running;
use crate::workers::slab::ExtentId;

impl<C: Carrier> Coordinator<C> {
    /// Handles a finished task: delivers the result, and puts the rest of the job back into the queue.
    pub(super) fn done(&mut self, number: u64, done: Done) {
        let Done { id: task, evaluated, took, tally } = done;
        let Some(Running { mut job, asked, room, since }) = self.take_task(number, task) else { return };
        if let Some(tally) = tally {
            self.recorder.add(tally, &self.workers.node(number));
        }
        let Evaluated { indices, used, need, last, opened, .. } = evaluated;
        if indices > asked || (indices == 0 && !last) || (last && job.lane.is_none()) {
            let why = format!("it reports {indices} of {asked} elements as done, the last: {last}");
            return self.workers.reject(number, task, Running { job, asked, room, since }, why);
        }
        let bytes = match room.into_bytes(used) {
            Ok(bytes) => bytes,
            Err((room, error)) => {
                let running = Running { job, asked, room, since };
                return self.workers.reject(number, task, running, error.to_string());
            }
        };
        if self.options.hedge.is_some() {
            self.queue.answer_times.note(since.elapsed());
        }
        let host = self.recorder.number_of_host(&self.workers.node(number));
        let made = Evaluation {
            who: EvaluatorId { number: u32::try_from(number).unwrap_or(u32::MAX), host },
            bytes: used as u64,
            slowest: evaluated.slowest,
            off: evaluated.off,
            lost: job.lost.take(),
            ..Evaluation::now(took.saturating_sub(opened))
        };
        let delivery = Delivery { bytes, evaluated, made, task };
        match job.deliver.part(&delivery) {
            Ok(at) => job.read_on(task, indices, at),
            Err(error) => {
                self.queue.put(job);
                return self.workers.kill(number, format!("its output cannot be read: {error}"));
            }
        }
        self.workers.lanes.read(&job, number, opened);
        if indices > 0 {
            self.memory.learn(job.border, used as f64 / indices as f64);
        }
        self.tuning.count(&delivery.evaluated, took);
        if let Some(worker) = self.workers.all.get_mut(&number) {
            worker.finished += 1;
            self.memory.observe_heap(worker);
        }
        self.workers.respawn.progress();
        job.advance(indices);
        self.queue.set_need(&mut job, need.unwrap_or(0) as u64, self.plan.most_group());
        if last {
            job.end();
        }
        self.queue.put(job);
    }

    /// Handles a task whose first slot or group needs more memory, or whose extent the worker keeps.
    pub(super) fn need(&mut self, number: u64, need: Need) {
        let Some(Running { mut job, asked, room, since }) = self.take_task(number, need.id) else { return };
        if need.kept {
            let most = self.workers.begin.keep;
            let Some(worker) = self.workers.all.get_mut(&number) else { return self.queue.put(job) };
            let kept = worker.kept.iter().map(Room::len).sum::<usize>() + room.len();
            if kept as u64 > most || job.lane.is_some() {
                let why = format!("it keeps {} of shared memory, of {} at most", Bytes(kept as u64), Bytes(most));
                return self.workers.reject(number, need.id, Running { job, asked, room, since }, why);
            }
            worker.kept.push(room);
            self.recorder.note("ranges evaluated again because a function keeps an array that it returned or made", 1);
        }
        job.read_on(need.id, 0, None);
        self.workers.lanes.read(&job, number, Duration::ZERO);
        self.queue.set_need(&mut job, need.bytes, self.plan.most_group());
        self.queue.put(job);
    }

    /// Handles the return of an extent that the worker had kept.
    pub(super) fn returned(&mut self, number: u64, extent: ExtentId) {
        let Some(worker) = self.workers.all.get_mut(&number) else { return };
        match worker.kept.iter().position(|room| room.extent() == extent) {
            Some(at) => drop(worker.kept.swap_remove(at)),
            None => self.workers.kill(number, format!("it returns {extent}, which it does not keep")),
        }
    }

    fn take_task(&mut self, number: u64, id: u64) -> Option<Running<C>> {
        let worker = self.workers.all.get_mut(&number)?;
        if let Some(stale) = worker.stale.remove(&id) {
            return self.recall(stale);
        }
        let task = worker.tasks.remove(&id);
        if task.is_none() {
            self.workers.kill(number, format!("it answers task {id}, which it does not have"));
        }
        task
    }
}
