//! Ranges that wait to be evaluated.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::exec::remote::{Border, Deliver};

/// A range of root indices, and how far it is.
pub(super) struct Job {
    /// When it was asked for, as a number: the order in which ranges get memory and workers.
    pub(super) seq: u64,
    pub(super) border: Border,
    /// What is not delivered yet.
    pub(super) left: Range<u64>,
    /// Which indices may come as one, if any.
    pub(super) groups: Option<Groups>,
    /// Indices that one task may have: all, until the element is sought that kills workers.
    pub(super) limit: u64,
    /// Bytes that the next slot is known to need.
    pub(super) need: usize,
    /// Workers that died over it since it last got on.
    pub(super) deaths: u32,
    /// Whether the element is being sought that kills workers: a death then halves the limit.
    pub(super) hunt: bool,
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

    /// A worker died over it before. Until it gets on, it has a worker for itself: so no other is suspected with it.
    pub(super) fn is_suspect(&self) -> bool {
        self.deaths > 0
    }

    /// So many indices at once are the least that a task can bring.
    pub(super) fn least(&self) -> u64 {
        self.groups.map_or(1, |groups| groups.size.min(self.left.end - self.left.start))
    }

    /// From now on every index comes by itself.
    pub(super) fn ungroup(&mut self) {
        (self.groups, self.need) = (None, 0);
        self.deliver.ungroup();
    }

    /// So many `indices` of it were delivered.
    pub(super) fn advance(&mut self, indices: u64) {
        self.left.start += indices;
        self.need = 0;
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

    /// The element in front was left out.
    pub(super) fn skip(&mut self) {
        (self.hunt, self.limit, self.deaths) = (false, u64::MAX, 0);
        self.advance(1);
    }
}

/// Jobs in the order in which they were asked for.
#[derive(Default)]
pub(super) struct Queue {
    jobs: BTreeMap<u64, Job>,
    next_seq: u64,
}

impl Queue {
    pub(super) fn submit(&mut self, border: Border, left: Range<u64>, group: Option<u64>, deliver: Box<dyn Deliver>) {
        let seq = self.next_seq;
        self.next_seq += 1;
        let groups = group.map(|size| Groups { first: left.start, size });
        self.put(Job { seq, border, left, groups, limit: u64::MAX, need: 0, deaths: 0, hunt: false, deliver });
    }

    /// Back to its place.
    pub(super) fn put(&mut self, job: Job) {
        if !job.left.is_empty() {
            self.jobs.insert(job.seq, job);
        }
    }

    /// The first that somebody still waits for.
    pub(super) fn first(&mut self) -> Option<&Job> {
        while self.jobs.first_key_value().is_some_and(|(_, job)| !job.deliver.wanted()) {
            self.jobs.pop_first();
        }
        self.jobs.first_key_value().map(|(_, job)| job)
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        self.jobs.pop_first().map(|(_, job)| job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Result};
    use crate::exec::remote::Part;

    struct Nobody(bool);

    impl Deliver for Nobody {
        fn wanted(&self) -> bool {
            self.0
        }
        fn part(&mut self, _: &Part) -> Result<()> {
            Ok(())
        }
        fn ungroup(&mut self) {}
        fn skip(&mut self) {}
        fn fail(&mut self, _: Error) {}
    }

    /// Evaluates a job of which the elements `poison` kill their worker; returns what was left out, and the deaths.
    fn hunt(len: u64, retries: u32, poison: &[u64]) -> (Vec<u64>, u32) {
        let mut queue = Queue::default();
        queue.submit(0, 0..len, None, Box::new(Nobody(true)));
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
    fn jobs_keep_their_place_and_unwanted_ones_go() {
        let mut queue = Queue::default();
        for (n, wanted) in [false, true, true].into_iter().enumerate() {
            queue.submit(n as u32, 0..10, None, Box::new(Nobody(wanted)));
        }
        assert_eq!(queue.first().unwrap().border, 1);
        let mut job = queue.pop().unwrap();
        job.advance(4);
        queue.put(job);
        let job = queue.pop().unwrap();
        assert_eq!((job.border, job.left), (1, 4..10));
    }
}
