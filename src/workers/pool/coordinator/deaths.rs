//! Deaths of workers, and handling of their unfinished tasks.

use std::time::Instant;

use super::Coordinator;
use crate::error::{Error, ErrorKind, Told};
use crate::exec::remote::Segment;
use crate::workers::options::Poison;
use crate::workers::pool::carrier::{Carrier, End, Link};
use crate::workers::pool::job::Job;
use crate::workers::pool::worker::Running;
use crate::workers::pool::workers::is_overdue;

impl<C: Carrier> Coordinator<C> {
    /// Handles the end of a worker after reaping: its memory has no writer left, and other workers repeat its tasks.
    pub(super) fn exited(&mut self, number: u64, exit: &C::End) {
        // A worker that died of a wild write may have written elsewhere before.
        self.carrier.look_at_leases();
        self.check_leases();
        let Some(worker) = self.workers.all.remove(&number) else { return };
        self.tuning.counts_received(number);
        if worker.stop_sent {
            return;
        }
        self.workers.replaced += 1;
        let outside = worker.kill_reason.is_none() && exit.is_from_outside();
        let (who, cause) = (exit.who(), worker.kill_reason.unwrap_or_else(|| exit.cause(worker.cap)));
        let ranges: Vec<_> = worker.tasks.values().map(|task| task.job.next_task()).collect();
        if exit.is_asked_for() {
            // A signal to end this process and all its children reaches workers too; such an end is expected.
            tracing::info!(worker = number, who, ?ranges, "a worker was ended and is replaced: {cause}");
        } else {
            tracing::warn!(worker = number, who, ?ranges, "a worker died and is replaced: {cause}");
        }
        self.recorder.note(&format!("workers replaced: {cause}"), 1);
        let (now, own, at_work) = (Instant::now(), !exit.is_of_others(), !worker.tasks.is_empty());
        // If passes share the worker, an element of another pass may have killed it. The task is then only a suspect.
        let alone = worker.tasks.len() == 1 && !exit.is_of_anybody();
        let late: Vec<bool> =
            worker.tasks.values().map(|task| is_overdue(task.since, now, self.options.deadline)).collect();
        let hung = late.contains(&true);
        let tasks = worker.tasks.into_values().zip(late).map(|(task, late)| (own && (!hung || late), task));
        for (blamed, Running { mut job, since, .. }) in tasks.collect::<Vec<_>>() {
            job.lost.get_or_insert((since, now));
            if !blamed || !job.blame(self.options.retries, alone) {
                self.queue.put(job);
            } else if worker.cap < self.plan.solo_heap_bytes && !hung {
                // The element may only need more memory than one worker's share.
                self.recorder.note("elements tried again with the memory of all workers", 1);
                job.widen(self.options.retries);
                self.queue.put(job);
            } else {
                self.fail_element(job, &format!("{cause}, worker {number} ({who})"));
            }
        }
        // A death during work is caused by some element, and the search for that element ends.
        if !at_work && self.workers.respawn.died(Instant::now(), outside, self.workers.target) {
            let what = format!("worker {number}, the last of many that died with nothing done between");
            self.fail(Told::in_words(&exit.error(what)));
        }
    }

    /// Handles a job whose first element kills every worker.
    fn fail_element(&mut self, mut job: Job, cause: &str) {
        let (retries, at) = (self.options.retries, job.left.start);
        match (&job.lane, self.options.poison) {
            // Later elements of a stream can only be found by reading all earlier elements.
            (Some(Segment { lane, .. }), _) => {
                let what = format!("{retries} workers died over this element of lane {lane}; the last: {cause}");
                let error = Error::new(ErrorKind::Worker, what).index(at);
                job.deliver.fail(error.help(
                    "evaluate it with `workers: 0` under a debugger; an element inside a lane cannot be skipped",
                ));
            }
            (None, Poison::Error) => {
                let what = format!("{retries} workers died over this element; the last: {cause}");
                let error = Error::new(ErrorKind::Worker, what).index(at);
                job.deliver.fail(error.help(
                    "raise `ram_budget` if the element needs more memory; evaluate it with `workers: 0` under a debugger; or \
                     skip such elements with `on_poison: skip`",
                ));
            }
            (None, Poison::Skip) => {
                tracing::warn!(element = at, "left out, because every worker died over it: {cause}");
                self.recorder.note("elements left out because workers died over them", 1);
                job.deliver.skip();
                job.skip();
                self.queue.put(job);
            }
        }
    }

    /// Ends the run with `failure`, which every waiting consumer receives.
    pub(super) fn fail(&mut self, failure: Told) {
        while let Some(mut job) = self.queue.pop() {
            job.deliver.fail(failure.clone().into_error());
        }
        for worker in self.workers.all.values_mut() {
            // The memory of workers returns when they are gone.
            for Running { job, .. } in worker.tasks.values_mut() {
                job.deliver.fail(failure.clone().into_error());
                job.end();
            }
            if let Some(link) = &worker.link {
                link.let_go();
            }
        }
        self.failure = Some(failure);
    }
}
