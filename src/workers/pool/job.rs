//! Ranges in evaluation, and the search for elements that kill workers.

use std::ops::Range;
use std::time::{Duration, Instant};

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
    pub(super) due: u64,
    /// Time since which the job has been waiting.
    pub(super) since: Instant,
    /// Bytes that the next slot is known to need.
    pub(super) need: usize,
    /// Worker that was late with the job, to be avoided.
    pub(super) avoid: Option<Late>,
    pub(super) crashes: Crashes,
    /// Times at which a worker received the next task and died, if a worker died.
    pub(super) lost: Option<(Instant, Instant)>,
    pub(super) deliver: Box<dyn Deliver>,
}

/// Deaths of workers over a job, and the search for the element that causes them.
#[derive(Default)]
pub(super) struct Crashes {
    /// Workers that died over the job since its last progress.
    pub(super) deaths: u32,
    /// Maximum indices per task, if an element that kills workers is being searched for; a death halves the limit.
    limit: Option<u64>,
    /// Whether the next worker for the job gets the memory of all workers.
    pub(super) wide: bool,
}

/// Groups of `size` indices, counted from `first`.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) first: u64,
    pub(super) size: u64,
}

impl Job {
    pub(super) fn new(seq: u64, border: Border, left: Range<u64>, how: How, deliver: Box<dyn Deliver>) -> Self {
        let (mut groups, mut listed, mut lane, mut due, mut fed) = (None, None, None, 0, None);
        match how {
            How::Slots => {}
            How::Listed(indices) => listed = Some((left.start, indices)),
            How::Groups(size) => groups = Some(Groups { first: left.start, size }),
            How::Lane { from, due: wanted } => (lane, due) = (Some(from), wanted),
            How::Fed(elements) => fed = Some(elements),
        }
        let (since, need, avoid, crashes, lost) = (Instant::now(), 0, None, Crashes::default(), None);
        Self { seq, border, left, groups, lane, fed, listed, due, since, need, avoid, crashes, lost, deliver }
    }

    /// Returns the range of the next task.
    pub(super) fn next_task(&self) -> Range<u64> {
        self.left.start..self.left.end.min(self.left.start.saturating_add(self.crashes.limit.unwrap_or(u64::MAX)))
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
        self.crashes.deaths > 0 || self.crashes.wide
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
        if let Some(at) = at { lane.at = at } else { lane.at.skip += indices }
    }

    /// Ends the job after the delivered indices.
    pub(super) fn end(&mut self) {
        self.left.start = self.left.end;
    }

    /// Records that `indices` indices were delivered.
    pub(super) fn advance(&mut self, indices: u64) {
        self.left.start += indices;
        (self.need, self.avoid) = (0, None);
        if self.crashes.wide {
            // The element was only too large for other workers; neither it nor later elements are suspect.
            self.crashes = Crashes::default();
        }
        if self.crashes.limit.is_none() {
            self.crashes.deaths = 0;
        }
    }

    /// Records a death over the job; `alone` if the worker had no other task. Returns true if a single element has
    /// caused `retries` deaths.
    pub(super) fn blame(&mut self, retries: u32, alone: bool) -> bool {
        self.crashes.deaths += 1;
        // If the worker had other tasks, any of them may be the cause; suspect jobs run alone next time.
        if self.crashes.deaths < retries || !alone {
            return false;
        }
        let task = self.next_task();
        let len = task.end - task.start;
        if len <= 1 {
            return true;
        }
        // One more death in either half is sufficient.
        (self.crashes.limit, self.crashes.deaths) = (Some(len.div_ceil(2)), retries.saturating_sub(1).max(1));
        false
    }

    /// Makes the next attempt at the first element use the memory of all workers.
    pub(super) fn widen(&mut self, retries: u32) {
        (self.crashes.wide, self.crashes.deaths) = (true, retries.saturating_sub(1));
    }

    /// Skips the first element.
    pub(super) fn skip(&mut self) {
        self.crashes = Crashes::default();
        self.advance(1);
    }

    /// Returns true if a second worker should evaluate the job, whose worker has taken `time`. Only the worker of a
    /// lane can resume it, and a suspect job would kill another worker.
    pub(super) fn is_late(&self, time: Duration, late: Duration) -> bool {
        time > late && self.lane.is_none() && !self.is_suspect()
    }

    /// Returns true if this is job `seq` and has delivered nothing beyond index `start`.
    pub(super) fn is_at(&self, seq: u64, start: u64) -> bool {
        self.seq == seq && self.left.start == start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::pool::queue::Queue;
    use crate::workers::pool::queue::tests::Nobody;

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

    const MS: Duration = Duration::from_millis(1);

    /// Returns jobs 0 and 1, each with indices 0 to 9.
    fn jobs(how: impl Fn() -> How) -> [Job; 2] {
        let mut queue = Queue::default();
        (0..2).for_each(|_| queue.submit(0.into(), 0..10, how(), Box::new(Nobody(true))));
        [0, 1].map(|seq| queue.take(seq).unwrap())
    }

    #[test]
    fn a_task_is_hedged_just_after_its_time_and_not_before() {
        let late = 300 * MS;
        for (time, hedged) in
            [(Duration::ZERO, false), (299 * MS, false), (late, false), (late + MS, true), (9000 * MS, true)]
        {
            assert_eq!(jobs(|| How::Slots)[0].is_late(time, late), hedged, "{time:?}");
        }
    }

    #[test]
    fn suspects_and_lanes_are_not_hedged() {
        let after = |change: fn(&mut Job)| {
            let [mut job, _] = jobs(|| How::Slots);
            change(&mut job);
            job.is_late(2 * MS, MS)
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
        assert!(!jobs(lane)[0].is_late(2 * MS, MS));
    }

    #[test]
    fn an_answer_set_aside_counts_for_its_own_job_at_its_own_place_alone() {
        let [mut job, other] = jobs(|| How::Slots);
        assert!(job.is_at(0, 0) && !other.is_at(0, 0));
        job.advance(4);
        assert!(!job.is_at(0, 0), "another answer has delivered these indices");
        assert!(job.is_at(0, 4) && !job.is_at(1, 4));
    }
}
