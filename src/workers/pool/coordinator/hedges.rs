//! Tasks that take much longer than others: another worker is asked the same, of another machine if there is one, and the first answer counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Coordinator;
use super::hand_out::others;
use crate::workers::pool::carrier::{Carrier, Link};
use crate::workers::pool::crew::{Running, Stale};
use crate::workers::pool::job::{Job, Late};

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
    /// Puts the jobs of late tasks back to their places, for workers that have time: those of other machines if there are any.
    pub(super) fn look_for_late(&mut self) {
        let Some(late) = self.options.hedge.and_then(|factor| self.times.late(factor)) else { return };
        let now = Instant::now();
        let is_late = |task: &Running<C>| is_late(&task.job, now.saturating_duration_since(task.since), late);
        let found = self.crew.iter().flat_map(|(&number, member)| {
            member.tasks.iter().filter(|(_, task)| is_late(task)).map(move |(&task, _)| (number, task))
        });
        for (number, task) in found.collect::<Vec<_>>() {
            let threads = self.plan.active_threads;
            let late = Late { machine: self.node(number), worker: number };
            let is_free = {
                let is_other = others(&self.crew, &late);
                let mut free = self.crew.iter().filter(|(_, member)| member.has_place(threads, false, 0));
                free.any(|(other, member)| *other != number && is_other(*other, member))
            };
            if is_free && let Some(mut job) = self.set_aside(number, task) {
                self.recorder.note("ranges asked of another worker, because they were late", 1);
                job.avoid = Some(late);
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
        let is_same = |job: &Job| is_at(job, seq, start);
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

/// Returns true if a second worker should evaluate `job`, whose worker has taken `time`. Only its own worker can read a lane on, and
/// a suspect job would kill another worker.
fn is_late(job: &Job, time: Duration, late: Duration) -> bool {
    time > late && job.lane.is_none() && !job.is_suspect()
}

/// Returns true if `job` is job `seq` and has delivered nothing beyond index `start`.
fn is_at(job: &Job, seq: u64, start: u64) -> bool {
    job.seq == seq && job.left.start == start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Result};
    use crate::exec::remote::{Deliver, Delivery, How, Point, Segment};
    use crate::workers::pool::job::Queue;

    const MS: Duration = Duration::from_millis(1);

    struct Nobody;

    impl Deliver for Nobody {
        fn wanted(&self) -> bool {
            true
        }
        fn part(&mut self, _: &Delivery) -> Result<Option<Point>> {
            Ok(None)
        }
        fn ungroup(&mut self) {}
        fn skip(&mut self) {}
        fn fail(&mut self, _: Error) {}
    }

    /// Jobs 0 and 1, each of indices 0 to 9.
    fn jobs(how: impl Fn() -> How) -> [Job; 2] {
        let mut queue = Queue::default();
        (0..2).for_each(|_| queue.submit(0.into(), 0..10, how(), Box::new(Nobody)));
        [0, 1].map(|seq| queue.take(seq).unwrap())
    }

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

    #[test]
    fn the_time_of_a_late_task_follows_from_what_99_of_100_take() {
        // Times that tasks took in ms, the factor, and the time after which a task is late.
        let ms = |times: &[u32]| times.iter().map(|&time| time * MS).collect::<Vec<_>>();
        let most = |count: usize, rest: &[u32]| ms(&[&vec![100; count][..], rest].concat());
        for (times, factor, late) in [
            (ms(&[]), 3.0, None),
            (ms(&[10]), 3.0, Some(5000)),
            (ms(&[1000, 4000]), 3.0, Some(12_000)),
            // 19 times are too few, 20 are enough.
            (most(19, &[]), 3.0, Some(5000)),
            (most(20, &[]), 3.0, Some(300)),
            (most(20, &[]), 1.5, Some(200)),
            (most(20, &[]), 2.01, Some(201)),
            // One of 100 may take long, two may not.
            (most(99, &[9000]), 3.0, Some(300)),
            (most(98, &[9000, 9000]), 3.0, Some(27_000)),
            // Times are forgotten after 256 others.
            ([ms(&[9000; 10]), most(246, &[])].concat(), 3.0, Some(27_000)),
            ([ms(&[9000; 10]), most(256, &[])].concat(), 3.0, Some(300)),
        ] {
            let mut all = Times::default();
            times.iter().for_each(|&time| all.note(time));
            assert_eq!(all.late(factor), late.map(|late| late * MS), "{times:?}, {factor}");
        }
    }

    #[test]
    fn a_task_is_hedged_just_after_its_time_and_not_before() {
        let late = 300 * MS;
        for (time, hedged) in
            [(Duration::ZERO, false), (299 * MS, false), (late, false), (late + MS, true), (9000 * MS, true)]
        {
            assert_eq!(is_late(&jobs(|| How::Slots)[0], time, late), hedged, "{time:?}");
        }
    }

    #[test]
    fn suspects_and_lanes_are_not_hedged() {
        let after = |change: fn(&mut Job)| {
            let [mut job, _] = jobs(|| How::Slots);
            change(&mut job);
            is_late(&job, 2 * MS, MS)
        };
        assert!(after(|_| ()));
        assert!(
            !after(|job| {
                job.blame(3, false);
            }),
            "a worker died over it"
        );
        assert!(!after(|job| job.widen(1)), "it is tried with the memory of all workers");
        let lane =
            || How::Lane { from: Segment { lane: 0, at: Point { state: "{}".into(), skip: 0 }, after: None }, due: 0 };
        assert!(!is_late(&jobs(lane)[0], 2 * MS, MS));
    }

    #[test]
    fn an_answer_set_aside_counts_for_its_own_job_at_its_own_place_alone() {
        let [mut job, other] = jobs(|| How::Slots);
        assert!(is_at(&job, 0, 0) && !is_at(&other, 0, 0));
        job.advance(4);
        assert!(!is_at(&job, 0, 0), "another answer has delivered these indices");
        assert!(is_at(&job, 0, 4) && !is_at(&job, 1, 4));
    }
}
