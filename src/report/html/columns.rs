//! A run divided into columns of equal time, from which its pictures are drawn.

use std::time::Duration;

use super::super::{Place, Report};
use crate::cx::{Cause, Fill, LEVELS, Snapshot, WorkerMemory};

/// A column of equal time.
#[derive(Clone, Debug, Default)]
pub(super) struct Column {
    /// Share of the column in which the consumer waited, by cause.
    pub(super) waits: [f64; Cause::ALL.len()],
    /// Share of the column in which threads evaluated elements, and in which the single reader thread worked.
    pub(super) threads: f64,
    pub(super) reader: f64,
    /// Mean number of filled places of the buffer.
    pub(super) ready: f64,
    /// Share of the column in which the buffer was at each level.
    pub(super) fill: [f64; LEVELS],
    /// Largest memory of this process, in bytes; 0 if unknown.
    pub(super) memory: f64,
    /// Largest memory of workers.
    pub(super) workers: WorkerMemory,
    /// Share of the column in which each stage worked, by stage id; more than 1 if several threads did.
    pub(super) work: Vec<f64>,
}

/// Columns of a run.
#[derive(Debug)]
pub(super) struct Columns {
    /// Seconds from the start of the recorder to the first column, and seconds per column.
    pub(super) start: f64,
    pub(super) width: f64,
    pub(super) all: Vec<Column>,
    /// Number of looks at which the buffer was at each level when the consumer called `next`.
    pub(super) looks: [f64; LEVELS],
}

impl Columns {
    /// Divides the run of `report` into `count` columns; none if no element was delivered.
    pub(super) fn of(report: &Report, count: usize) -> Self {
        let records = &report.picture.records;
        let end = records.intervals.last().map_or(0.0, |last| last.to.as_secs_f64());
        let end = records.batches.last().map_or(end, |last| last.given.as_secs_f64());
        // The kept records may cover only a part of the run.
        let start = (end - report.wall_s).max(0.0);
        let width = (end - start) / count as f64;
        if width <= 0.0 {
            return Self { start, width: 0.0, all: Vec::new(), looks: [0.0; LEVELS] };
        }
        let stages = report.stages.len();
        let all = vec![Column { work: vec![0.0; stages], ..Column::default() }; count];
        let mut columns = Self { start, width, all, looks: [0.0; LEVELS] };
        columns.add_waits(records);
        columns.add_work(records, report);
        columns
    }

    /// Returns the seconds from the start of the first column to the end of the last.
    pub(super) fn span(&self) -> f64 {
        self.width * self.all.len() as f64
    }

    /// Returns the place of a time after the start of the recorder, 0 to 1.
    pub(super) fn place(&self, at_s: f64) -> f64 {
        ((at_s - self.start) / self.span().max(1e-9)).clamp(0.0, 1.0)
    }

    /// Adds the waits of batches as far back as they are kept; before that, the waits of intervals.
    fn add_waits(&mut self, records: &Snapshot) {
        let kept = records.batches.first().map_or(Duration::MAX, |first| first.asked);
        for interval in records.intervals.iter().filter(|interval| interval.to <= kept) {
            for (cause, time) in interval.shares.iter() {
                self.spread((interval.from, interval.to), time.as_secs_f64(), |column| {
                    &mut column.waits[cause as usize]
                });
            }
        }
        // Waits around the loader have no exact time; they fell between two batches.
        let mut before = records.batches.first().map_or(Duration::ZERO, |first| first.asked);
        for batch in &records.batches {
            for (times, shares) in [((batch.asked, batch.given), batch.shares), ((before, batch.asked), batch.beside)] {
                for (cause, time) in shares.iter().filter(|(_, time)| !time.is_zero()) {
                    self.spread(times, time.as_secs_f64(), |column| &mut column.waits[cause as usize]);
                }
            }
            before = batch.given;
        }
        for interval in records.intervals.iter().filter(|interval| interval.to <= kept && interval.looks > 0) {
            let mean = interval.ready as f64 / f64::from(interval.looks);
            let levels = interval.fill.shares();
            self.looks.iter_mut().zip(levels).for_each(|(looks, level)| *looks += level * f64::from(interval.looks));
            self.over((interval.from, interval.to), |share, column| {
                column.ready += mean * share;
                column.fill.iter_mut().zip(levels).for_each(|(fill, level)| *fill += level * share);
            });
        }
        for ready in records.batches.iter().filter_map(|batch| batch.ready) {
            self.looks[Fill::level(ready)] += 1.0;
        }
        // The fill is constant from each look to the next.
        let looks: Vec<_> = records.batches.iter().filter_map(|batch| Some((batch.asked, batch.ready?))).collect();
        for look in looks.windows(2) {
            let (ready, level) = (f64::from(look[0].1), Fill::level(look[0].1));
            self.over((look[0].0, look[1].0), |share, column| {
                column.ready += ready * share;
                column.fill[level] += share;
            });
        }
    }

    fn add_work(&mut self, records: &Snapshot, report: &Report) {
        for interval in &records.intervals {
            for (stage, seconds) in interval.work.iter().enumerate() {
                self.spread((interval.from, interval.to), f64::from(*seconds), |column| &mut column.work[stage]);
            }
            let memory = interval.memory as f64;
            self.over((interval.from, interval.to), |_, column| {
                column.memory = column.memory.max(memory);
                column.workers = column.workers.larger(interval.workers);
            });
        }
        let threads = report.execution.threads.max(1) as f64;
        let kept = records.chunks.first().map_or(Duration::MAX, |first| first.begun);
        for column in &mut self.all {
            for (stage, work) in report.stages.iter().zip(&column.work) {
                if let Place::Threads = stage.place { column.threads += work / threads } else { column.reader += work }
            }
        }
        // Chunks give the busy time of threads more precisely than intervals.
        let mut by_chunk = vec![0.0; self.all.len()];
        for chunk in &records.chunks {
            let time = (chunk.done.saturating_sub(chunk.begun)).as_secs_f64() / threads;
            let (start, width) = (self.start, self.width);
            spread((chunk.begun, chunk.done), start, width, by_chunk.len(), |at, part| {
                by_chunk[at] += time * part / width
            });
        }
        let first = (self.place(kept.as_secs_f64()) * self.all.len() as f64).ceil() as usize;
        for (column, busy) in self.all.iter_mut().zip(by_chunk).skip(first) {
            column.threads = busy;
        }
        for column in &mut self.all {
            column.threads = column.threads.min(1.0);
            column.reader = column.reader.min(1.0);
        }
    }

    /// Spreads seconds that fell between these times over the columns, as shares of each column, into the field returned by `of`.
    fn spread(&mut self, between: (Duration, Duration), seconds: f64, of: impl Fn(&mut Column) -> &mut f64) {
        let (start, width, count) = (self.start, self.width, self.all.len());
        spread(between, start, width, count, |at, part| *of(&mut self.all[at]) += seconds * part / width);
    }

    /// Calls `see` with each column that these times touch, and the share of the column between them.
    fn over(&mut self, between: (Duration, Duration), see: impl Fn(f64, &mut Column)) {
        let (start, width, count) = (self.start, self.width, self.all.len());
        let time = between.1.saturating_sub(between.0).as_secs_f64();
        spread(between, start, width, count, |at, part| see(part * time / width, &mut self.all[at]));
    }
}

/// Calls `see` with each column that these times touch, and the share of the time that falls into the column.
fn spread((from, to): (Duration, Duration), start: f64, width: f64, count: usize, mut see: impl FnMut(usize, f64)) {
    let (from, to) = (from.as_secs_f64() - start, to.as_secs_f64() - start);
    let time = to - from;
    if count == 0 || to < 0.0 || time <= 0.0 {
        return;
    }
    let last = ((to / width) as usize).min(count - 1);
    for at in (from.max(0.0) / width) as usize..=last {
        let (begin, end) = ((at as f64 * width).max(from), ((at + 1) as f64 * width).min(to));
        if end > begin {
            see(at, (end - begin) / time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_spread_over_columns_and_none_is_lost() {
        let seconds = Duration::from_secs_f64;
        for (from, to, told) in
            [(0.5, 3.5, 1.0), (2.0, 2.2, 1.0), (9.5, 11.0, 1.0 / 3.0), (0.0, 10.0, 1.0), (12.0, 13.0, 0.0)]
        {
            let mut sum = 0.0;
            spread((seconds(from), seconds(to)), 0.0, 1.0, 10, |at, part| {
                assert!(at < 10);
                sum += part;
            });
            assert!((sum - told).abs() < 1e-9, "{from} to {to}: {sum}");
        }
    }
}
