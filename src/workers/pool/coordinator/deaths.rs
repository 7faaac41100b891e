//! Deaths of workers, and handling of their unfinished tasks.

use std::time::{Duration, Instant};

use super::Coordinator;
use crate::error::{Error, ErrorKind, Told};
use crate::exec::remote::Segment;
use crate::workers::options::Poison;
use crate::workers::pool::carrier::{Carrier, End, Link};
use crate::workers::pool::crew::{Member, Running};
use crate::workers::pool::job::Job;

impl<C: Carrier> Coordinator<C> {
    pub(super) fn kill(&mut self, number: u64, why: String) {
        let Some(member) = self.crew.get_mut(&number) else { return };
        member.killed.get_or_insert(why);
        if let Some(link) = &member.link {
            link.kill();
        }
    }

    /// Ends the run if a worker has written to elements after delivery, because their holders now see changed data.
    pub(super) fn look_at_memory(&mut self) {
        let Some((place, extent)) = self.carrier.spoilt().filter(|_| self.over.is_none()) else { return };
        let found = self.crew.iter().find(|(_, member)| member.place == place);
        let who = match found.and_then(|(number, member)| Some((number, member.link.as_ref()?.who()))) {
            Some((number, who)) => format!("worker {number} ({who})"),
            None => "a worker that has ended".to_owned(),
        };
        let what = format!("{who} wrote to memory of elements that it had handed over: {extent}");
        let error = Error::new(ErrorKind::Worker, what);
        self.give_up(Told::in_words(&error.help(
            "native code in the pipeline writes through a wild pointer: evaluate it with `workers: 0` under a debugger",
        )));
    }

    /// Handles the end of a worker after reaping: its memory has no writer left, and other workers repeat its tasks.
    pub(super) fn exited(&mut self, number: u64, exit: &C::End) {
        // A worker that died of a wild write may have written elsewhere before.
        self.carrier.look_at_leases();
        self.look_at_memory();
        let Some(member) = self.crew.remove(&number) else { return };
        self.counted(number);
        if member.told_to_stop {
            return;
        }
        self.replaced += 1;
        let killed = member.killed.is_none() && exit.is_from_outside();
        let (who, cause) = (exit.who(), member.killed.unwrap_or_else(|| exit.cause(member.cap)));
        let ranges: Vec<_> = member.tasks.values().map(|task| task.job.next_task()).collect();
        if exit.is_asked_for() {
            // A signal to end this process and all its children reaches workers too; such an end is expected.
            tracing::info!(worker = number, who, ?ranges, "a worker was ended and is replaced: {cause}");
        } else {
            tracing::warn!(worker = number, who, ?ranges, "a worker died and is replaced: {cause}");
        }
        self.recorder.note(&format!("workers replaced: {cause}"), 1);
        let (now, own, at_work) = (Instant::now(), !exit.is_of_others(), !member.tasks.is_empty());
        // If passes share the worker, an element of another pass may have killed it. The task is then only a suspect.
        let alone = member.tasks.len() == 1 && !exit.is_of_anybody();
        let late: Vec<bool> =
            member.tasks.values().map(|task| is_overdue(task.since, now, self.options.deadline)).collect();
        let hung = late.contains(&true);
        let tasks = member.tasks.into_values().zip(late).map(|(task, late)| (own && (!hung || late), task));
        for (blamed, Running { mut job, since, .. }) in tasks.collect::<Vec<_>>() {
            job.lost.get_or_insert((since, now));
            if !blamed || !job.blame(self.options.retries, alone) {
                self.queue.put(job);
            } else if member.cap < self.plan.solo_heap_bytes && !hung {
                // The element may only need more memory than one worker's share.
                self.recorder.note("elements tried again with the memory of all workers", 1);
                job.widen(self.options.retries);
                self.queue.put(job);
            } else {
                self.poisoned(job, &format!("{cause}, worker {number} ({who})"));
            }
        }
        // A death during work is caused by some element, and the search for that element ends.
        if !at_work && self.respawn.died(Instant::now(), killed, self.wanted) {
            let what = format!("worker {number}, the last of many that died with nothing done between");
            self.give_up(Told::in_words(&exit.error(what)));
        }
    }

    /// Handles a job whose first element kills every worker.
    fn poisoned(&mut self, mut job: Job, cause: &str) {
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

    pub(super) fn look_at_deadlines(&mut self) {
        self.carrier.look_at_leases();
        let Some(deadline) = self.options.deadline else { return };
        let now = Instant::now();
        let is_late = |member: &Member<C>| member.since().any(|since| is_overdue(since, now, Some(deadline)));
        let late = self.crew.iter().filter(|(_, member)| member.killed.is_none() && is_late(member));
        let late: Vec<u64> = late.map(|(&number, _)| number).collect();
        for number in late {
            self.kill(number, format!("it took longer than the deadline of {deadline:?}"));
        }
    }

    /// Ends the run with `failure`, which every waiting consumer receives.
    pub(super) fn give_up(&mut self, failure: Told) {
        while let Some(mut job) = self.queue.pop() {
            job.deliver.fail(failure.clone().into_error());
        }
        for member in self.crew.values_mut() {
            // The memory of workers returns when they are gone.
            for Running { job, .. } in member.tasks.values_mut() {
                job.deliver.fail(failure.clone().into_error());
                job.end();
            }
            if let Some(link) = &member.link {
                link.let_go();
            }
        }
        self.over = Some(failure);
    }
}

/// Returns true if a task that was sent at `since` is beyond the deadline at `now`.
fn is_overdue(since: Instant, now: Instant, deadline: Option<Duration>) -> bool {
    deadline.is_some_and(|deadline| now.saturating_duration_since(since) > deadline)
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
