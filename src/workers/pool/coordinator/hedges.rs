//! Tasks that take much longer than others: another machine is asked the same, and the first answer counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Coordinator;
use crate::workers::pool::carrier::{Carrier, Link};
use crate::workers::pool::crew::{Running, Stale};
use crate::workers::pool::job::Job;

/// Times of answers that are remembered, and how many there have to be before they say what is usual.
const REMEMBERED: usize = 256;
const ENOUGH: usize = 20;
/// As long as there are fewer, no task is late that has taken less: what is asked for first also opens files and warms up.
const EARLY: Duration = Duration::from_secs(5);
/// No task is late that has taken less: machines stall for as long as that.
const LEAST: Duration = Duration::from_millis(200);

/// Times that tasks took of late, from when they were sent until they were answered.
#[derive(Debug, Default)]
pub(super) struct Times(VecDeque<Duration>);

impl Times {
    pub(super) fn note(&mut self, time: Duration) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(time);
    }

    /// The time after which a task is late, `factor` times what 99 of 100 take; `None` as long as none is known.
    fn late(&self, factor: f64) -> Option<Duration> {
        let mut times: Vec<Duration> = self.0.iter().copied().collect();
        if times.len() < ENOUGH {
            // Nobody else may get on either, where what is late holds all that may be under way.
            return times.iter().max().map(|longest| longest.mul_f64(factor).max(EARLY));
        }
        let at = (times.len() * 99).div_ceil(100) - 1;
        let (_, p99, _) = times.select_nth_unstable(at);
        Some(p99.mul_f64(factor).max(LEAST))
    }
}

impl<C: Carrier> Coordinator<C> {
    /// Puts the jobs of late tasks back to their places, for workers of other machines that have time.
    pub(super) fn look_for_late(&mut self) {
        let Some(late) = self.options.hedge.and_then(|factor| self.times.late(factor)) else { return };
        let is_late =
            |task: &Running<C>| task.since.elapsed() > late && task.job.lane.is_none() && !task.job.is_suspect();
        let found = self.crew.iter().flat_map(|(&number, member)| {
            member.tasks.iter().filter(|(_, task)| is_late(task)).map(move |(&task, _)| (number, task))
        });
        for (number, task) in found.collect::<Vec<_>>() {
            let threads = self.plan.active_threads;
            let node = self.node(number);
            let free = self.crew.values().any(|member| {
                member.has_place(threads, false, 0) && member.link.as_ref().map(Link::node) != Some(node.clone())
            });
            if free && let Some(mut job) = self.set_aside(number, task) {
                self.recorder.note("ranges asked of another machine, because they were late", 1);
                job.avoid = Some(node);
                self.queue.put(job);
            }
        }
    }

    /// The machine of a worker; nothing for one of this.
    pub(super) fn node(&self, number: u64) -> String {
        self.crew.get(&number).and_then(|member| member.link.as_ref()).map(Link::node).unwrap_or_default()
    }

    /// Takes the job of a task, whose answer counts all the same if it comes before any other.
    fn set_aside(&mut self, number: u64, task: u64) -> Option<Job> {
        let member = self.crew.get_mut(&number)?;
        let Running { job, asked, room, since } = member.tasks.remove(&task)?;
        let (seq, start) = (job.seq, job.left.start);
        member.stale.insert(task, Stale { seq, start, asked, room, since });
        Some(job)
    }

    /// The task that was set aside, with its job again, if nobody was sooner.
    pub(super) fn recall(&mut self, stale: Stale<C>) -> Option<Running<C>> {
        let Stale { seq, start, asked, room, since } = stale;
        let is_same = |job: &Job| job.seq == seq && job.left.start == start;
        let job = match self.queue.get(seq).is_some_and(is_same) {
            true => self.queue.take(seq),
            false => {
                let mut tasks =
                    self.crew.iter().flat_map(|(&n, member)| member.tasks.iter().map(move |(&id, task)| (n, id, task)));
                let holder = tasks.find(|(_, _, task)| is_same(&task.job)).map(|(number, id, _)| (number, id));
                holder.and_then(|(number, id)| self.set_aside(number, id))
            }
        };
        job.map(|job| Running { job, asked, room, since })
    }

    /// Notes the time that a task took.
    pub(super) fn note_time(&mut self, since: Instant) {
        if self.options.hedge.is_some() {
            self.times.note(since.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_late_that_takes_much_longer_than_most() {
        let mut times = Times::default();
        assert_eq!(times.late(3.0), None);
        for n in 0..ENOUGH as u64 - 1 {
            times.note(Duration::from_millis(n));
        }
        assert_eq!(times.late(3.0), Some(EARLY));
        times.note(Duration::from_secs(2));
        assert_eq!(times.late(3.0), Some(Duration::from_secs(6)));
        (0..REMEMBERED).for_each(|_| times.note(Duration::from_millis(1)));
        assert_eq!(times.late(3.0), Some(LEAST));
    }
}
