//! Answers of workers to their tasks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Coordinator;
use crate::cx::{Made, Who};
use crate::exec::remote::{Delivery, Evaluated};
use crate::units::Bytes;
use crate::workers::control::{Done, Need};
use crate::workers::pool::carrier::{Carrier, Room};
use crate::workers::pool::crew::Running;
use crate::workers::pool::job::Job;
use crate::workers::slab::ExtentId;

impl<C: Carrier> Coordinator<C> {
    /// Handles a finished task: delivers the result, and puts the rest of the job back into the queue.
    pub(super) fn done(&mut self, number: u64, done: Done) {
        let Done { id: task, evaluated, took, tally } = done;
        let Some(Running { mut job, asked, room, since }) = self.take_task(number, task) else { return };
        if let Some(tally) = tally {
            self.recorder.add(tally, &self.node(number));
        }
        let Evaluated { indices, used, need, last, opened, kept, .. } = evaluated;
        if indices > asked || (indices == 0 && !last) || (last && job.lane.is_none()) {
            let why = format!("it reports {indices} of {asked} elements as done, the last: {last}");
            return self.distrust(number, task, Running { job, asked, room, since }, why);
        }
        let bytes = match room.into_bytes(used) {
            Ok(bytes) => bytes,
            Err((room, error)) => {
                return self.distrust(number, task, Running { job, asked, room, since }, error.to_string());
            }
        };
        self.note_time(since);
        let host = self.recorder.number_of_host(&self.node(number));
        let made = Made {
            who: Who { number: u32::try_from(number).unwrap_or(u32::MAX), host },
            bytes: used as u64,
            slowest: evaluated.slowest,
            off: evaluated.off,
            lost: job.lost.take(),
            ..Made::now(took.saturating_sub(opened))
        };
        let delivery = Delivery { bytes, evaluated, made, task };
        match job.deliver.part(&delivery) {
            Ok(at) => job.read_on(task, indices, at),
            Err(error) => {
                self.queue.put(job);
                return self.kill(number, format!("its output cannot be read: {error}"));
            }
        }
        self.lanes.read(&job, number, opened);
        if indices > 0 {
            let bytes = used as f64 / indices as f64;
            self.index_bytes.entry(job.border).and_modify(|known| *known += (bytes - *known) / 4.0).or_insert(bytes);
        }
        self.figures.busy_ns.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        self.handed_over += used as u64;
        self.indices += indices;
        self.answers.answers += 1;
        self.answers.kept += u64::from(kept);
        if let Some(member) = self.crew.get_mut(&number) {
            member.done += 1;
        }
        self.look_at_heap(number);
        self.respawn.progress();
        job.advance(indices);
        self.wants(&mut job, need.unwrap_or(0) as u64);
        if last {
            job.end();
        }
        self.queue.put(job);
    }

    /// Handles a task whose first slot or group needs more memory, or whose extent the worker keeps.
    pub(super) fn need(&mut self, number: u64, need: Need) {
        let Some(Running { mut job, asked, room, since }) = self.take_task(number, need.id) else { return };
        if need.kept {
            let most = self.keep();
            let Some(member) = self.crew.get_mut(&number) else { return self.queue.put(job) };
            let kept = member.kept.iter().map(Room::len).sum::<usize>() + room.len();
            if kept as u64 > most || job.lane.is_some() {
                let why = format!("it keeps {} of shared memory, of {} at most", Bytes(kept as u64), Bytes(most));
                return self.distrust(number, need.id, Running { job, asked, room, since }, why);
            }
            member.kept.push(room);
            self.recorder.note("ranges evaluated again because a function keeps an array that it returned or made", 1);
        }
        job.read_on(need.id, 0, None);
        self.lanes.read(&job, number, Duration::ZERO);
        self.wants(&mut job, need.bytes);
        self.queue.put(job);
    }

    /// Handles the return of an extent that the worker had kept.
    pub(super) fn returned(&mut self, number: u64, extent: ExtentId) {
        let Some(member) = self.crew.get_mut(&number) else { return };
        match member.kept.iter().position(|room| room.extent() == extent) {
            Some(at) => drop(member.kept.swap_remove(at)),
            None => self.kill(number, format!("it returns {extent}, which it does not keep")),
        }
    }

    /// Returns the slab bytes that a worker may keep; all workers together may keep half of the slab without the
    /// reserve.
    pub(super) fn keep(&self) -> u64 {
        if self.options.arrays_in_slab { self.plan.keep() } else { 0 }
    }

    /// Records that the next slot or group of a job needs `bytes`; splits groups that are too large.
    fn wants(&mut self, job: &mut Job, bytes: u64) {
        job.need = usize::try_from(bytes).unwrap_or(usize::MAX);
        if job.groups.is_some() && bytes > self.plan.most_group() {
            self.apart.insert(job.border);
            job.ungroup();
        }
    }

    fn take_task(&mut self, number: u64, id: u64) -> Option<Running<C>> {
        let member = self.crew.get_mut(&number)?;
        if let Some(stale) = member.stale.remove(&id) {
            return self.recall(stale);
        }
        let task = member.tasks.remove(&id);
        if task.is_none() {
            self.kill(number, format!("it answers task {id}, which it does not have"));
        }
        task
    }

    /// Kills a worker after an invalid message. The worker keeps the task and its memory until it is reaped.
    fn distrust(&mut self, number: u64, id: u64, task: Running<C>, why: String) {
        if let Some(member) = self.crew.get_mut(&number) {
            member.tasks.insert(id, task);
        }
        self.kill(number, why);
    }
}
