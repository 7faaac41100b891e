//! Ranges that wait for evaluation.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use crate::exec::remote::{Border, Deliver, Fed, How, Point, Segment};

/// A worker that was late with a job, and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) machine: String,
    pub(super) worker: u64,
}

/// A range of root indices and its progress.
pub(super) struct Job {
    /// Sequence number in order of submission; memory and workers are assigned in this order.
    pub(super) seq: u64,
    pub(super) border: Border,
    /// Indices that are not delivered yet.
    pub(super) left: Range<u64>,
    /// Groups of indices that may each be evaluated into one batch, if any.
    pub(super) groups: Option<Groups>,
    /// Lane of the indices and the position to resume it from, if they are of a lane.
    pub(super) lane: Option<Segment>,
    /// Elements of a stream read by this process; `left` numbers them.
    pub(super) fed: Option<Fed>,
    /// First submitted index, and the indices that the job's range maps to; `None` for the identity.
    listed: Option<(u64, Box<[u64]>)>,
    /// Order in which elements of a lane are needed.
    due: u64,
    /// Time since which the job has been waiting.
    pub(super) since: Instant,
    /// Maximum indices per task: unlimited, except during the search for an element that kills workers.
    pub(super) limit: u64,
    /// Bytes that the next slot is known to need.
    pub(super) need: usize,
    /// Worker that was late with the job, to be avoided.
    pub(super) avoid: Option<Late>,
    /// Workers that died over the job since its last progress.
    pub(super) deaths: u32,
    /// Times at which a worker received the next task and died, if a worker died.
    pub(super) lost: Option<(Instant, Instant)>,
    /// Whether an element that kills workers is being searched for; a death then halves the limit.
    pub(super) hunt: bool,
    /// Whether the next worker for the job gets the memory of all workers.
    pub(super) wide: bool,
    pub(super) deliver: Box<dyn Deliver>,
}

/// Groups of `size` indices, counted from `first`.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) first: u64,
    pub(super) size: u64,
}

impl Job {
    /// Returns the range of the next task.
    pub(super) fn next_task(&self) -> Range<u64> {
        self.left.start..self.left.end.min(self.left.start.saturating_add(self.limit))
    }

    /// Returns the indices that the range `task` maps to; `None` for the identity.
    pub(super) fn listed(&self, task: &Range<u64>) -> Option<Vec<u64>> {
        let (first, indices) = self.listed.as_ref()?;
        let at = |index: u64| index.saturating_sub(*first) as usize;
        indices.get(at(task.start)..at(task.end)).map(<[u64]>::to_vec)
    }

    /// Returns true if a worker died over the job. Until the job advances, it runs alone in a worker, so that no other
    /// job becomes suspect.
    pub(super) fn is_suspect(&self) -> bool {
        self.deaths > 0 || self.wide
    }

    /// Returns the smallest number of indices that a task can deliver.
    pub(super) fn least(&self) -> u64 {
        self.groups.map_or(1, |groups| groups.size.min(self.left.end - self.left.start))
    }

    /// Delivers every index separately from now on.
    pub(super) fn ungroup(&mut self) {
        (self.groups, self.need) = (None, 0);
        self.deliver.ungroup();
    }

    /// Records the answer of task `id` with `indices` elements of its lane. `at` is the lane's new position, or `None`
    /// if the task passed no mark.
    pub(super) fn read_on(&mut self, id: u64, indices: u64, at: Option<Point>) {
        let Some(lane) = &mut self.lane else { return };
        lane.after = Some(id);
        match at {
            Some(at) => lane.at = at,
            None => lane.at.skip += indices,
        }
    }

    /// Ends the job after the delivered indices.
    pub(super) fn end(&mut self) {
        self.left.start = self.left.end;
    }

    /// Records that `indices` indices were delivered.
    pub(super) fn advance(&mut self, indices: u64) {
        self.left.start += indices;
        (self.need, self.avoid) = (0, None);
        if self.wide {
            // The element was only too large for other workers; nothing is known against it or later elements.
            self.clear();
        }
        if !self.hunt {
            self.deaths = 0;
        }
    }

    /// Records a death over the job; `alone` if the worker had no other task. Returns true if a single element has
    /// caused `retries` deaths.
    pub(super) fn blame(&mut self, retries: u32, alone: bool) -> bool {
        self.deaths += 1;
        // If the worker had other tasks, any of them may be the cause; suspect jobs run alone next time.
        if self.deaths < retries || !alone {
            return false;
        }
        let task = self.next_task();
        let len = task.end - task.start;
        if len <= 1 {
            return true;
        }
        // One more death in either half is sufficient.
        (self.hunt, self.limit, self.deaths) = (true, len.div_ceil(2), retries.saturating_sub(1).max(1));
        false
    }

    /// Makes the next attempt at the first element use the memory of all workers.
    pub(super) fn widen(&mut self, retries: u32) {
        (self.wide, self.deaths) = (true, retries.saturating_sub(1));
    }

    /// Skips the first element.
    pub(super) fn skip(&mut self) {
        self.clear();
        self.advance(1);
    }

    /// Clears all suspicion.
    fn clear(&mut self) {
        (self.hunt, self.wide, self.limit, self.deaths) = (false, false, u64::MAX, 0);
    }
}

/// Jobs in order of submission.
#[derive(Default)]
pub(super) struct Queue {
    jobs: BTreeMap<u64, Job>,
    next_seq: u64,
}

impl Queue {
    pub(super) fn submit(&mut self, border: Border, left: Range<u64>, how: How, deliver: Box<dyn Deliver>) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let (mut groups, mut listed, mut lane, mut due, mut fed) = (None, None, None, 0, None);
        match how {
            How::Slots => {}
            How::Listed(indices) => listed = Some((left.start, indices)),
            How::Groups(size) => groups = Some(Groups { first: left.start, size }),
            How::Lane { from, due: wanted } => (lane, due) = (Some(from), wanted),
            How::Fed(elements) => fed = Some(elements),
        }
        let since = Instant::now();
        let (limit, need, deaths) = (u64::MAX, 0, 0);
        let (hunt, wide, avoid, lost) = (false, false, None, None);
        let job = Job {
            seq,
            border,
            left,
            groups,
            lane,
            fed,
            listed,
            due,
            since,
            limit,
            need,
            avoid,
            deaths,
            lost,
            hunt,
            wide,
            deliver,
        };
        let job = self.in_turn(job);
        self.put(job);
    }

    /// Swaps segments of lanes so that waiting segments are in the order of need: the last submitted segment may be
    /// needed first. Returns the segment for the last place.
    fn in_turn(&mut self, mut job: Job) -> Job {
        if job.lane.is_some() {
            for other in self.jobs.values_mut() {
                if other.lane.is_some() && other.border == job.border && other.due > job.due {
                    std::mem::swap(other, &mut job);
                    std::mem::swap(&mut other.seq, &mut job.seq);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Result};
    use crate::exec::remote::Delivery;

    struct Nobody(bool);

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

    /// Evaluates a job whose elements `poison` kill their worker; returns the skipped elements and the number of
    /// deaths.
    fn hunt(len: u64, retries: u32, poison: &[u64]) -> (Vec<u64>, u32) {
        let mut queue = Queue::default();
        queue.submit(0.into(), 0..len, How::Slots, Box::new(Nobody(true)));
        let (mut skipped, mut deaths) = (Vec::new(), 0);
        while let Some(mut job) = queue.pop() {
            let task = job.next_task();
            if !poison.iter().any(|p| task.contains(p)) {
                job.advance(task.end - task.start);
            } else {
                deaths += 1;
                if job.blame(retries, true) {
                    skipped.push(job.left.start);
                    job.skip();
                }
            }
            queue.put(job);
        }
        (skipped, deaths)
    }

    #[test]
    fn bisection_finds_every_poisonous_element_and_no_other() {
        for retries in [1, 3] {
            for poison in [vec![], vec![0], vec![99], vec![41], vec![0, 1, 2, 50, 99]] {
                let (skipped, deaths) = hunt(100, retries, &poison);
                assert_eq!(skipped, poison);
                // log2(100) halvings after the first deaths.
                assert!(deaths <= poison.len() as u32 * (retries + 8), "{deaths} deaths for {poison:?}");
            }
            assert_eq!(hunt(1, retries, &[0]), (vec![0], retries));
        }
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
    fn a_lane_is_read_on_from_the_last_mark() {
        let mut queue = Queue::default();
        let from = Segment { lane: 3, after: None, at: Point { state: "a".into(), skip: 60 } };
        queue.submit(0.into(), 100..200, How::Lane { from, due: 0 }, Box::new(Nobody(true)));
        let mut job = queue.pop().unwrap();
        let at =
            |job: &Job| job.lane.as_ref().map(|lane| (lane.after, lane.at.state.to_string(), lane.at.skip)).unwrap();
        job.read_on(7, 3, None);
        assert_eq!(at(&job), (Some(7), "a".to_owned(), 63));
        job.read_on(8, 5, Some(Point { state: "b".into(), skip: 4 }));
        assert_eq!(at(&job), (Some(8), "b".to_owned(), 4));
        job.end();
        queue.put(job);
        assert!(queue.first(0).is_none());
    }

    #[test]
    fn one_more_try_decides_over_an_element() {
        let mut queue = Queue::default();
        queue.submit(0.into(), 0..9, How::Slots, Box::new(Nobody(true)));
        let mut job = queue.pop().unwrap();
        while !job.blame(3, true) {}
        job.widen(3);
        assert!(job.is_suspect() && job.next_task() == (0..1));
        assert!(job.blame(3, true));
        job.widen(3);
        job.advance(1);
        assert!(!job.is_suspect() && job.next_task() == (1..9));
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
