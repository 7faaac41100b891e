//! Jobs that wait for a worker, and the facts on which their dispatch depends.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::ops::Range;
use std::time::Instant;

use super::answer_times::AnswerTimes;
use super::job::Job;
use crate::cx::{Hold, Recorder};
use crate::exec::remote::{Border, Deliver, How};

/// Jobs in order of submission.
#[derive(Default)]
pub(super) struct Queue {
    jobs: BTreeMap<u64, Job>,
    next_seq: u64,
    next_task: u64,
    /// Borders whose groups are too large for one batch, so that indices come separately.
    ungrouped: HashSet<Border>,
    pub(super) answer_times: AnswerTimes,
    /// Cause that delays a job for which a worker might be free.
    hold: Option<Hold>,
}

impl Queue {
    pub(super) fn submit(&mut self, border: Border, left: Range<u64>, how: How, deliver: Box<dyn Deliver>) {
        let seq = next(&mut self.next_seq);
        let job = self.in_order(Job::new(seq, border, left, how, deliver));
        self.put(job);
    }

    /// Swaps segments of lanes so that waiting segments are in the order of need: the last submitted segment may be
    /// needed first. Returns the segment for the last place.
    fn in_order(&mut self, mut job: Job) -> Job {
        if job.lane.is_some() {
            for other in self.jobs.values_mut() {
                if other.lane.is_some() && other.border == job.border && other.due > job.due {
                    mem::swap(other, &mut job);
                    mem::swap(&mut other.seq, &mut job.seq);
                }
            }
        }
        job
    }

    /// Puts a job back in its place, unless it is finished.
    pub(super) fn put(&mut self, mut job: Job) {
        if !job.left.is_empty() {
            job.since = Instant::now();
            self.jobs.insert(job.seq, job);
        }
    }

    /// Returns the first job from `from` on that still has a consumer; removes earlier jobs without a consumer.
    pub(super) fn first(&mut self, from: u64) -> Option<&Job> {
        while let Some((&seq, job)) = self.jobs.range(from..).next() {
            if job.deliver.wanted() {
                return self.jobs.get(&seq);
            }
            self.jobs.remove(&seq);
        }
        None
    }

    pub(super) fn get(&self, seq: u64) -> Option<&Job> {
        self.jobs.get(&seq)
    }

    pub(super) fn take(&mut self, seq: u64) -> Option<Job> {
        self.jobs.remove(&seq)
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        self.jobs.pop_first().map(|(_, job)| job)
    }

    /// Returns the ID of the next task.
    pub(super) fn task_id(&mut self) -> u64 {
        next(&mut self.next_task)
    }

    /// Records that the next slot or group of a job needs `bytes`. Groups above `most_group` bytes are split.
    pub(super) fn set_need(&mut self, job: &mut Job, bytes: u64, most_group: u64) {
        job.need = usize::try_from(bytes).unwrap_or(usize::MAX);
        if job.groups.is_some() && bytes > most_group {
            self.ungrouped.insert(job.border);
            job.ungroup();
        }
    }

    /// Splits the groups of a job if groups of its border were too large before.
    pub(super) fn split_groups(&self, job: &mut Job) {
        if job.groups.is_some() && self.ungrouped.contains(&job.border) {
            job.ungroup();
        }
    }

    /// Records the cause that delays the next job, if there is one.
    pub(super) fn set_hold(&mut self, hold: Option<Hold>, recorder: &Recorder) {
        if self.hold != hold {
            self.hold = hold;
            recorder.waits.hold(hold, Instant::now());
        }
    }
}

/// Returns the present number, and increments it.
fn next(number: &mut u64) -> u64 {
    mem::replace(number, *number + 1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::error::{Error, Result};
    use crate::exec::remote::{Delivery, Point, Segment};

    /// A consumer that is present or gone.
    pub(in crate::workers::pool) struct Nobody(pub(in crate::workers::pool) bool);

    impl Deliver for Nobody {
        fn wanted(&self) -> bool {
            self.0
        }
        fn part(&mut self, _: &Delivery) -> Result<Option<Point>> {
            Ok(None)
        }
        fn ungroup(&mut self) {}
        fn skip(&mut self) {}
        fn fail(&mut self, _: Error) {}
    }

    #[test]
    fn segments_stand_in_the_order_in_which_they_are_wanted() {
        let mut queue = Queue::default();
        let at = Point { state: "{}".into(), skip: 0 };
        let lane = |lane, due| How::Lane { from: Segment { lane, after: None, at: at.clone() }, due };
        let all =
            [(1, lane(0, 50)), (9, How::Slots), (1, lane(1, 40)), (2, lane(2, 1)), (1, lane(3, 45)), (1, lane(4, 60))];
        for (border, how) in all {
            queue.submit(border.into(), 0..10, how, Box::new(Nobody(true)));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|job| (job.border, job.seq, job.lane)).collect();
        assert!(order.iter().enumerate().all(|(n, (_, seq, _))| n as u64 == *seq));
        let order: Vec<_> =
            order.iter().map(|(border, _, lane)| (border.stage, lane.as_ref().map(|lane| lane.lane))).collect();
        // Other jobs keep their places in between, and jobs of another border are not compared.
        assert_eq!(order, [(1, Some(1)), (9, None), (1, Some(3)), (2, Some(2)), (1, Some(0)), (1, Some(4))]);
    }

    #[test]
    fn jobs_keep_their_place_and_unwanted_ones_go() {
        let mut queue = Queue::default();
        for (n, wanted) in [false, true, true].into_iter().enumerate() {
            queue.submit((n as u32).into(), 0..10, How::Slots, Box::new(Nobody(wanted)));
        }
        assert_eq!(queue.first(0).unwrap().border, 1.into());
        assert_eq!(queue.first(2).unwrap().border, 2.into());
        let mut job = queue.pop().unwrap();
        job.advance(4);
        queue.put(job);
        let job = queue.pop().unwrap();
        assert_eq!((job.border, job.left), (1.into(), 4..10));
    }
}
