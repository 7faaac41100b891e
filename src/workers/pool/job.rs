//! Ranges that wait to be evaluated.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use crate::exec::remote::{Border, Deliver, Fed, How, Point, Segment};

/// A worker that was late, and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) machine: String,
    pub(super) worker: u64,
}

/// A range of root indices, and how far it is.
pub(super) struct Job {
    /// A number that grows with the time at which it was asked for: the order in which ranges get memory and workers.
    pub(super) seq: u64,
    pub(super) border: Border,
    /// Indices that are not delivered yet.
    pub(super) left: Range<u64>,
    /// The indices that may come as one, if any.
    pub(super) groups: Option<Groups>,
    /// Of which lane they are, if of one, and where that is to be read on.
    pub(super) lane: Option<Segment>,
    /// Elements of a stream that this process has read; `left` numbers them.
    pub(super) fed: Option<Fed>,
    /// The indices that they stand for, from the first that was asked for on, if others than themselves.
    listed: Option<(u64, Box<[u64]>)>,
    /// The time at which a lane's are wanted.
    due: u64,
    /// Since when it has been waiting.
    pub(super) since: Instant,
    /// Indices that one task may have: all, until the element is sought that kills workers.
    pub(super) limit: u64,
    /// Bytes that the next slot is known to need.
    pub(super) need: usize,
    /// The worker that was late with it: another is to have it.
    pub(super) avoid: Option<Late>,
    /// Workers that died over it since it last got on.
    pub(super) deaths: u32,
    /// Times at which a worker was given what is next of it, and died, if one did.
    pub(super) lost: Option<(Instant, Instant)>,
    /// Whether the element is being sought that kills workers: a death then halves the limit.
    pub(super) hunt: bool,
    /// Whether the next worker for it is to have all the memory that workers have.
    pub(super) wide: bool,
    pub(super) deliver: Box<dyn Deliver>,
}

/// Groups of `size` indices from `first` on.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) first: u64,
    pub(super) size: u64,
}

impl Job {
    /// The range of the next task.
    pub(super) fn next_task(&self) -> Range<u64> {
        self.left.start..self.left.end.min(self.left.start.saturating_add(self.limit))
    }

    /// The indices that those of `task` stand for, if others than themselves.
    pub(super) fn listed(&self, task: &Range<u64>) -> Option<Vec<u64>> {
        let (first, indices) = self.listed.as_ref()?;
        let at = |index: u64| index.saturating_sub(*first) as usize;
        indices.get(at(task.start)..at(task.end)).map(<[u64]>::to_vec)
    }

    /// A worker died over it before. Until it gets on, it has a worker for itself: so no other is suspected with it.
    pub(super) fn is_suspect(&self) -> bool {
        self.deaths > 0 || self.wide
    }

    /// Computes how many indices at once are the least that a task can bring.
    pub(super) fn least(&self) -> u64 {
        self.groups.map_or(1, |groups| groups.size.min(self.left.end - self.left.start))
    }

    /// From now on every index comes by itself.
    pub(super) fn ungroup(&mut self) {
        (self.groups, self.need) = (None, 0);
        self.deliver.ungroup();
    }

    /// Task `id` was answered with so many indices of its lane, behind the last of which it is at `at`, unless there was no mark
    /// on the way.
    pub(super) fn read_on(&mut self, id: u64, indices: u64, at: Option<Point>) {
        let Some(lane) = &mut self.lane else { return };
        lane.after = Some(id);
        match at {
            Some(at) => lane.at = at,
            None => lane.at.skip += indices,
        }
    }

    /// Nothing comes behind what was delivered.
    pub(super) fn end(&mut self) {
        self.left.start = self.left.end;
    }

    /// Notes that so many `indices` of the job were delivered.
    pub(super) fn advance(&mut self, indices: u64) {
        self.left.start += indices;
        (self.need, self.avoid) = (0, None);
        if self.wide {
            // It was too large for others: nothing is wrong with it, nor, as far as is known, with what comes behind it.
            self.clear();
        }
        if !self.hunt {
            self.deaths = 0;
        }
    }

    /// A worker died over it, the `retries`th perhaps; `alone` is whether it had nothing else to do. Returns whether that was
    /// a single element's doing.
    pub(super) fn blame(&mut self, retries: u32, alone: bool) -> bool {
        self.deaths += 1;
        // Where there were others, one of those may have done it: suspect, it is alone the next time.
        if self.deaths < retries || !alone {
            return false;
        }
        let task = self.next_task();
        let len = task.end - task.start;
        if len <= 1 {
            return true;
        }
        // One more death in either half is enough.
        (self.hunt, self.limit, self.deaths) = (true, len.div_ceil(2), retries.saturating_sub(1).max(1));
        false
    }

    /// The element in front is tried once more, with all the memory that workers have.
    pub(super) fn widen(&mut self, retries: u32) {
        (self.wide, self.deaths) = (true, retries.saturating_sub(1));
    }

    /// The element in front was left out.
    pub(super) fn skip(&mut self) {
        self.clear();
        self.advance(1);
    }

    /// Nothing is known against it.
    fn clear(&mut self) {
        (self.hunt, self.wide, self.limit, self.deaths) = (false, false, u64::MAX, 0);
    }
}

/// Jobs in the order in which they were asked for.
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

    /// Segments of lanes have the places of those that wait, in the order in which they are wanted: the one that is asked for
    /// last may be needed first. Returns the one for the last place.
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

    /// Back to its place.
    pub(super) fn put(&mut self, mut job: Job) {
        if !job.left.is_empty() {
            job.since = Instant::now();
            self.jobs.insert(job.seq, job);
        }
    }

    /// The first, from place `from` on, that somebody still waits for.
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

    /// Evaluates a job of which the elements `poison` kill their worker; returns what was left out, and the deaths.
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
        // Others have their places in between, and those of another border are not compared.
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
