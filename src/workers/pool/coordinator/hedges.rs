//! Hedging: a task that takes much longer than others also goes to a second worker, preferably on another machine. The
//! first answer counts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Coordinator;
use super::hand_out::others;
use crate::workers::pool::carrier::{Carrier, Link};
use crate::workers::pool::crew::{Running, Stale};
use crate::workers::pool::job::{Job, Late};

/// Number of remembered answer times, and the minimum number before the 99th percentile is used.
const REMEMBERED: usize = 256;
const ENOUGH: usize = 20;
/// Minimum time of a late task before [`ENOUGH`] answers arrived; first tasks also open files and warm up.
const EARLY: Duration = Duration::from_secs(5);
/// Minimum time of a late task after that; machines sometimes stall for this long.
const LEAST: Duration = Duration::from_millis(200);

/// Recent answer times of tasks, each from sending to answer.
#[derive(Debug, Default)]
pub(super) struct Times(VecDeque<Duration>);

impl Times {
    pub(super) fn note(&mut self, time: Duration) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(time);
    }

    /// Returns the time after which a task is late: `factor` times the 99th percentile; `None` before the first answer.
    fn late(&self, factor: f64) -> Option<Duration> {
        let mut times: Vec<Duration> = self.0.iter().copied().collect();
        if times.len() < ENOUGH {
            // A late task may hold all ranges that may be in progress, and so block everything else.
            return times.iter().max().map(|longest| longest.mul_f64(factor).max(EARLY));
        }
        let at = (times.len() * 99).div_ceil(100) - 1;
        let (_, p99, _) = times.select_nth_unstable(at);
        Some(p99.mul_f64(factor).max(LEAST))
    }
}

impl<C: Carrier> Coordinator<C> {
    /// Puts the jobs of late tasks back into the queue for free workers, preferably on other machines.
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

    /// Returns the machine of a worker; empty for a worker on this machine.
    pub(super) fn node(&self, number: u64) -> String {
        self.crew.get(&number).and_then(|member| member.link.as_ref()).map(Link::node).unwrap_or_default()
    }

    /// Takes the job of a task away from its worker; the worker's answer still counts if it arrives first.
    fn set_aside(&mut self, number: u64, task: u64) -> Option<Job> {
        let member = self.crew.get_mut(&number)?;
        let Running { job, asked, room, since } = member.tasks.remove(&task)?;
        let (seq, start) = (job.seq, job.left.start);
        member.stale.insert(task, Stale { seq, start, asked, room, since });
        Some(job)
    }

    /// Returns the set-aside task with its job, if no other answer has arrived.
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

    /// Records the answer time of a task.
    pub(super) fn note_time(&mut self, since: Instant) {
        if self.options.hedge.is_some() {
            self.times.note(since.elapsed());
        }
    }
}

/// Returns true if a second worker should evaluate `job`, whose worker has taken `time`. Only the worker of a lane can
/// resume it, and a suspect job would kill another worker.
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

    /// Returns jobs 0 and 1, each with indices 0 to 9.
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
        // Times of tasks in ms, the factor, and the time after which a task is late.
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
            // One of 100 tasks may take long, two may not.
            (most(99, &[9000]), 3.0, Some(300)),
            (most(98, &[9000, 9000]), 3.0, Some(27_000)),
            // A time is forgotten after 256 later times.
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
