//! Summaries of intervals of a run: tenths of a second for recent times, longer intervals for older times.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Batch, Fill, WorkerMemory, memory, ns};
use crate::cx::waits::Shares;

/// Initial length of an interval.
const TIME: Duration = Duration::from_millis(100);
/// Number of kept intervals of each length: a minute of tenths of a second, an hour of seconds, ten hours of tens, and so on.
/// The total covers a month and a half. The oldest [`TOGETHER`] intervals of a length are merged into an interval of the next
/// length. The oldest of the last length are dropped.
const KEPT: [usize; 5] = [600, 3600, 3600, 3600, 3600];
const TOGETHER: usize = 10;

/// Summary of an interval of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Interval {
    /// Times of its start and end after the start of the run. An interval ends with a batch.
    #[serde(with = "ns")]
    pub(crate) from: Duration,
    #[serde(with = "ns")]
    pub(crate) to: Duration,
    /// Waits that ended during the interval, by cause.
    #[serde(with = "ns::by_cause")]
    pub(crate) shares: Shares,
    /// Elements that the consumer received.
    pub(crate) elements: u64,
    /// Seconds of self time of each stage, by id.
    pub(crate) work: Vec<f32>,
    /// Filled places of the buffer, summed over the requests of the consumer, and the number of requests.
    pub(crate) ready: u64,
    pub(crate) looks: u32,
    /// The requests by number of filled places.
    #[serde(default, skip_serializing_if = "Fill::is_empty")]
    pub(crate) fill: Fill,
    /// Resident bytes of this process at the end of the interval, or the maximum of merged intervals. 0 if the system does not
    /// report them.
    pub(crate) memory: u64,
    /// Largest memory of workers that was observed.
    #[serde(default, skip_serializing_if = "WorkerMemory::is_none")]
    pub(crate) workers: WorkerMemory,
}

/// Summaries of all intervals of a run.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    levels: [VecDeque<Interval>; KEPT.len()],
    present: Interval,
    /// Number of intervals that have ended.
    ended: u64,
    /// Self time of every stage at the start of the present interval, in nanoseconds.
    work: Vec<u64>,
    /// Memory of workers, as last reported.
    workers: WorkerMemory,
}

impl Intervals {
    /// Adds a batch to the present interval. Returns true if the interval is over.
    pub(super) fn add(&mut self, batch: &Batch) -> bool {
        let present = &mut self.present;
        present.shares.add(batch.shares);
        present.shares.add(batch.beside);
        present.elements += u64::from(batch.count);
        if let Some(ready) = batch.ready {
            present.ready += u64::from(ready);
            present.looks = present.looks.saturating_add(1);
            present.fill.count(ready);
        }
        batch.given.saturating_sub(present.from) >= TIME
    }

    /// Records the present memory of workers.
    pub(super) fn workers_use(&mut self, memory: WorkerMemory) {
        self.present.workers = self.present.workers.larger(memory);
        self.workers = memory;
    }

    /// Ends the present interval at time `at`. `work` is the work of each stage up to then.
    pub(super) fn close(&mut self, at: Duration, work: Vec<u64>) {
        let row = self.finished(at, &work);
        self.work = work;
        self.present = Interval { from: at, workers: self.workers, ..Interval::default() };
        self.push(row);
    }

    /// Adds an interval that has ended.
    pub(super) fn push(&mut self, interval: Interval) {
        self.levels[0].push_back(interval);
        self.ended += 1;
        self.thin();
    }

    /// Returns all ended intervals, the oldest first.
    pub(super) fn all(&self) -> Vec<Interval> {
        self.levels.iter().rev().flatten().cloned().collect()
    }

    /// Returns all intervals, the oldest first. The present interval is included as if it ended at `at`.
    pub(super) fn with_present(&self, at: Duration, work: &[u64]) -> Vec<Interval> {
        let mut all = self.all();
        all.extend(self.present(at, work));
        all
    }

    /// Returns the present interval as if it ended at `at`, or `None` if it is empty.
    pub(super) fn present(&self, at: Duration, work: &[u64]) -> Option<Interval> {
        let has_any = self.present.elements > 0 || self.present.shares != Shares::default();
        has_any.then(|| self.finished(at, work))
    }

    /// Returns intervals that have ended since `cursor` and still have their initial length. Advances `cursor`.
    pub(super) fn since(&self, cursor: &mut u64) -> Vec<Interval> {
        let gone = self.ended - self.levels[0].len() as u64;
        let skip = cursor.saturating_sub(gone) as usize;
        *cursor = self.ended;
        self.levels[0].iter().skip(skip).cloned().collect()
    }

    fn finished(&self, at: Duration, work: &[u64]) -> Interval {
        let before = self.work.iter().copied().chain(std::iter::repeat(0));
        let seconds = |(now, before): (&u64, u64)| (now.saturating_sub(before) as f64 / 1e9) as f32;
        let work = work.iter().zip(before).map(seconds).collect();
        Interval { to: at, work, memory: memory::own(), ..self.present.clone() }
    }

    /// Merges the oldest intervals of full levels.
    fn thin(&mut self) {
        for (level, kept) in KEPT.into_iter().enumerate() {
            if self.levels[level].len() <= kept {
                return;
            }
            let oldest = self.levels[level].drain(..TOGETHER).reduce(Interval::with);
            if let Some(next) = self.levels.get_mut(level + 1) { next.extend(oldest) } else { return }
        }
    }
}

impl Interval {
    /// Merges this interval with the next.
    fn with(mut self, next: Self) -> Self {
        self.to = next.to;
        self.shares.add(next.shares);
        self.elements += next.elements;
        self.work.iter_mut().zip(&next.work).for_each(|(work, next)| *work += next);
        self.ready += next.ready;
        self.looks = self.looks.saturating_add(next.looks);
        self.fill.add(next.fill);
        self.memory = self.memory.max(next.memory);
        self.workers = self.workers.larger(next.workers);
        self
    }
}

/// Returns the maximum bytes of the intervals of a pipeline of `stages` stages.
#[cfg(test)]
pub(super) fn most_bytes(stages: usize) -> usize {
    let intervals = KEPT.iter().map(|kept| kept + TOGETHER).sum::<usize>();
    intervals * (size_of::<Interval>() + stages * size_of::<f32>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cause;

    #[test]
    fn stretches_that_are_long_ago_go_together_and_nothing_is_lost() {
        let mut intervals = Intervals::default();
        let runs = 20_000_u64;
        for number in 1..=runs {
            let at = TIME * number as u32;
            let batch = Batch {
                first: 10 * number,
                count: 10,
                ready: Some(3),
                asked: at - TIME / 4,
                given: at,
                made: None,
                shares: Shares::of(Cause::Queue, TIME / 8),
                beside: Shares::of(Cause::Transfer, TIME / 8),
            };
            assert!(intervals.add(&batch));
            intervals.workers_use(WorkerMemory { heaps: number, shared: 1, budget: 2 * runs });
            intervals.close(at, vec![number * 50_000_000, 0]);
        }
        let rows = intervals.with_present(TIME * runs as u32, &[]);
        // A minute of tenths of a second; earlier times in seconds.
        assert!((600 + 1940..=610 + 1940).contains(&rows.len()), "{}", rows.len());
        assert!(rows.windows(2).all(|rows| rows[0].to == rows[1].from), "no gap, and in order");
        assert_eq!(rows.iter().map(|row| row.elements).sum::<u64>(), 10 * runs);
        assert_eq!(rows.iter().map(|row| row.ready).sum::<u64>(), 3 * runs);
        assert_eq!(rows.iter().map(|row| row.shares.total()).sum::<Duration>(), TIME / 4 * runs as u32);
        assert_eq!(rows.iter().map(|row| row.fill.shares()[3]).sum::<f64>(), rows.len() as f64);
        assert!(rows.windows(2).all(|rows| rows[0].workers.heaps < rows[1].workers.heaps), "the most of each");
        let work: f32 = rows.iter().map(|row| row.work[0]).sum();
        assert!((work - runs as f32 / 20.0).abs() < 1.0, "{work}");
    }
}
