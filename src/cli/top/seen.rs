//! State of a viewer: the last frame of a run, its last minute and the chosen table.

use std::collections::{HashMap, VecDeque};

use crate::live::top::Frame;
use crate::report::Interval;

/// Table below the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tab {
    Stages,
    Workers,
    Elements,
}

/// Seconds that the lines cover.
pub(super) const WINDOW_S: f64 = 60.0;

/// Everything that the screen shows.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) frame: Option<Frame>,
    /// Intervals of the window, oldest first.
    pub(super) intervals: VecDeque<Interval>,
    pub(super) tab: Tab,
    /// Reason why no more frames arrive.
    pub(super) over: Option<String>,
    pub(super) has_colours: bool,
    /// CPU time of each worker in the previous frame, and that frame's time.
    before: (HashMap<u64, f64>, f64),
}

impl Seen {
    pub(super) fn new(has_colours: bool) -> Self {
        let (intervals, before) = (VecDeque::new(), (HashMap::new(), 0.0));
        Self { frame: None, intervals, tab: Tab::Stages, over: None, has_colours, before }
    }

    /// Adds a frame.
    pub(super) fn add(&mut self, mut frame: Frame) {
        // Another pass may have replaced the previous pass. Its time begins at zero.
        let last = self.intervals.back().map_or(Default::default(), |last| last.to);
        if frame.intervals.first().is_some_and(|first| first.from < last) {
            self.intervals.clear();
        }
        self.intervals.extend(frame.intervals.drain(..));
        let end = self.intervals.back().map_or(0.0, |last| last.to.as_secs_f64());
        while self.intervals.front().is_some_and(|first| first.to.as_secs_f64() < end - WINDOW_S) {
            self.intervals.pop_front();
        }
        if let Some(before) = self.frame.replace(frame) {
            let workers = before.report.workers.into_iter().flat_map(|workers| workers.workers);
            self.before = (workers.map(|worker| (worker.number, worker.cpu_s)).collect(), before.at_s);
        }
    }

    /// Returns the mean number of cores that a worker has used since the previous frame, if known.
    pub(super) fn cores_of(&self, number: u64, cpu_s: f64) -> Option<f64> {
        let (before, at_s) = &self.before;
        let time = self.frame.as_ref()?.at_s - at_s;
        (time > 0.0).then_some(())?;
        before.get(&number).map(|before| (cpu_s - before).max(0.0) / time)
    }
}

/// Values for columns of equal time. The last column ends with the last interval.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Share of the column's time in which the consumer waited.
    pub(super) waits: Vec<f64>,
    /// Share of the buffer that was full.
    pub(super) ready: Vec<f64>,
    /// Share of the time in which the thread of the in-order stages worked; `threads` covers all threads that evaluate elements.
    pub(super) in_order: Vec<f64>,
    pub(super) threads: Vec<f64>,
    /// Maximum memory of the process in bytes.
    pub(super) memory: Vec<f64>,
}

impl Lines {
    pub(super) fn of(seen: &Seen, columns: usize) -> Self {
        let none = || vec![0.0; columns];
        let mut lines = Self { waits: none(), ready: none(), in_order: none(), threads: none(), memory: none() };
        let (Some(frame), Some(last)) = (&seen.frame, seen.intervals.back()) else { return lines };
        let (report, end) = (&frame.report, last.to.as_secs_f64());
        let start = (end - WINDOW_S).max(seen.intervals[0].from.as_secs_f64().min(end));
        // A short run fills the width, too, but a column covers at least an interval of 0.1 s.
        let width = ((end - start) / columns.max(1) as f64).max(0.1);
        let start = end - width * columns as f64;
        let (threads, places) = (report.execution.threads.max(1) as f64, frame.buffer.max(1) as f64);
        for interval in &seen.intervals {
            let (from, to) = (interval.from.as_secs_f64() - start, interval.to.as_secs_f64() - start);
            let time = (to - from).max(1e-9);
            let waited: f64 = interval.shares.iter().map(|(_, time)| time.as_secs_f64()).sum();
            let work = |ahead: bool| -> f64 {
                let there = report.stages.iter().zip(&interval.work);
                there.filter(|(stage, _)| stage.runs_ahead() == ahead).map(|(_, work)| f64::from(*work)).sum()
            };
            let ready = if interval.looks > 0 { interval.ready as f64 / f64::from(interval.looks) } else { 0.0 };
            let first = (from.max(0.0) / width) as usize;
            for column in first..columns.min((to.max(0.0) / width).ceil() as usize) {
                let (begin, end) = ((column as f64 * width).max(from), ((column + 1) as f64 * width).min(to));
                let part = (end - begin).max(0.0);
                lines.waits[column] += waited * part / time / width;
                lines.ready[column] += ready / places * part / width;
                lines.in_order[column] += work(false) * part / time / width;
                lines.threads[column] += work(true) / threads * part / time / width;
                lines.memory[column] = lines.memory[column].max(interval.memory as f64);
            }
        }
        lines
    }
}
