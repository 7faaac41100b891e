//! Short trial runs of a pipeline, each with one setting.

use std::any::Any;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Choice, MANY_THREADS, Measured, PerformanceConfig, PickLimits, TARGET};
use crate::dataset::IterDataset;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::report::{Place, Report};
use crate::tune::{Decision, Measurement};
use crate::units::Bytes;
use crate::workers::budget::Plan;
use crate::workers::{MpOptions, mp_prefetch};

/// A pipeline to run with several settings.
pub(super) struct Trial<'a, C, D> {
    pub(super) factory: fn(C) -> Result<D>,
    pub(super) cfg: C,
    pub(super) limits: &'a PickLimits,
    pub(super) budget: u64,
    pub(super) cores: usize,
}

/// Totals of several passes.
#[derive(Debug, Default)]
pub(super) struct Passes {
    pub(super) delivered: u64,
    /// Batches without the first batch of each pass; `steady_s` excludes the wait for that batch.
    pub(super) steady: u64,
    pub(super) wall_s: f64,
    pub(super) steady_s: f64,
    pub(super) wait_s: f64,
    pub(super) busy_s: f64,
    /// Work of stages on threads in seconds: total time, and time on a core.
    pub(super) worked_s: f64,
    pub(super) cpu_s: f64,
    pub(super) threads: usize,
    pub(super) batch_bytes: u64,
    pub(super) heap_used: u64,
    pub(super) slab_used: u64,
    pub(super) window: usize,
    pub(super) decisions: Vec<Decision>,
}

impl<C: Serialize + DeserializeOwned + Clone, D: IterDataset<Item: 'static> + 'static> Trial<'_, C, D> {
    /// Runs passes over the pipeline, starting with `threads` threads. `time` counts from the first batch of each pass.
    pub(super) fn run(&self, threads: usize, tuned: bool, time: Duration) -> Result<Passes> {
        let start = Instant::now();
        let mut passes = Passes { threads, ..Passes::default() };
        let mut left = time;
        loop {
            let options = MpOptions::auto().workers(1).ram_budget(self.budget).tune(tuned);
            // Without tuning, the number of threads is exactly the measured number.
            let most = if tuned { self.limits.max_threads } else { Some(threads) };
            let options = most.into_iter().fold(options, MpOptions::threads_per_worker).start_threads(passes.threads);
            let mut loader = mp_prefetch(self.factory, self.cfg.clone(), options)?.build()?;
            let mut first: Option<Instant> = None;
            for batch in loader.by_ref() {
                passes.batch_bytes = passes.batch_bytes.max(size_of_batch(&batch?));
                if !self.limits.step.is_zero() {
                    // Simulates the consumer's step.
                    std::thread::sleep(self.limits.step);
                }
                if first.get_or_insert_with(Instant::now).elapsed() >= left {
                    break;
                }
            }
            passes.add(&loader.report());
            left = left.saturating_sub(first.map_or(left, |first| first.elapsed()));
            // A short pipeline restarts often, and a pass with one or two batches is mostly start-up.
            let late = start.elapsed() >= if passes.steady > 0 { time + time / 4 } else { 3 * time };
            if left.is_zero() || late {
                return Ok(passes);
            }
        }
    }

    pub(super) fn config(&self, choice: Choice) -> Result<PerformanceConfig> {
        let Choice { runs, start, chosen, decisions } = choice;
        let most = |of: fn(&Passes) -> u64| runs.iter().map(of).max().unwrap_or(0);
        let batch_bytes = most(|passes| passes.batch_bytes);
        let (buffer, ready) = self.buffer(batch_bytes);
        let Some(ram_budget) = self.budget.checked_sub(ready) else {
            let (budget, batch) = (Bytes(self.budget), Bytes(batch_bytes));
            return Err(Error::config(format!("ram_budget is {budget}, less than three batches of {batch}"))
                .help("raise `ram_budget`, or make batches smaller"));
        };
        let config = PerformanceConfig {
            workers: 1,
            threads_per_worker: chosen.threads,
            buffer,
            ram_budget,
            slab_bytes: 0,
            worker_heap_bytes: 0,
            slab_used_bytes: most(|passes| passes.slab_used),
            heap_used_bytes: most(|passes| passes.heap_used),
            window: runs.iter().rev().find(|passes| passes.window > 0).map_or(0, |passes| passes.window),
            batch_bytes,
            start,
            chosen,
            decisions,
        };
        let plan = Plan::new(&config.options(), self.cores, self.budget)?;
        Ok(PerformanceConfig { slab_bytes: plan.slab_bytes, worker_heap_bytes: plan.heap_bytes, ..config })
    }

    /// Returns the number of batches to keep ready, and the bytes of all batches in this process. These are the ready
    /// batches, one batch in progress, and one held by the consumer. They get a quarter of the budget, but at least
    /// three batches.
    fn buffer(&self, batch_bytes: u64) -> (usize, u64) {
        let fit = (self.budget / 4).checked_div(batch_bytes).map_or(usize::MAX, |n| n as usize);
        let buffer = fit.saturating_sub(2).clamp(1, self.limits.max_buffer_size);
        (buffer, batch_bytes.saturating_mul(buffer as u64 + 2))
    }
}

impl Passes {
    fn add(&mut self, report: &Report) {
        let first = report.waits.first_wait_s;
        self.delivered += report.delivered;
        self.steady += report.delivered.saturating_sub(1);
        self.wall_s += report.wall_s;
        self.steady_s += (report.wall_s - first).max(0.0);
        self.wait_s += (report.waits.consumer_wait_share * report.wall_s - first).max(0.0);
        self.busy_s += report.execution.threads_busy_share * report.wall_s * report.execution.threads as f64;
        for stage in report.stages.iter().filter(|stage| stage.place == Place::Threads) {
            self.worked_s += stage.work.self_s;
            self.cpu_s += stage.work.cpu_s;
        }
        let Some(workers) = &report.workers else { return };
        self.threads = workers.threads_per_worker.max(1);
        self.slab_used = self.slab_used.max(workers.slab_high_water_bytes);
        self.window = workers.window;
        self.decisions.extend(workers.decisions.iter().cloned());
        for worker in &workers.workers {
            self.heap_used = self.heap_used.max(worker.heap_bytes);
        }
    }

    /// Returns the number of threads that can keep `cores` cores busy.
    pub(super) fn most_on(&self, cores: usize) -> usize {
        let busy =
            Measurement { busy_s: self.worked_s, cpu_s: self.cpu_s, wall_s: self.wall_s, ..Measurement::default() };
        let most = if self.cpu_s > 0.0 { busy.most_on(cores, 1) } else { cores };
        most.clamp(cores.max(1), cores.max(MANY_THREADS))
    }

    pub(super) fn busy_share(&self) -> f64 {
        let all = self.steady_s * self.threads as f64;
        if all > 0.0 { (self.busy_s / all).min(1.0) } else { 1.0 }
    }

    /// Returns the smallest number of threads that can do the measured work.
    pub(super) fn needed(&self) -> usize {
        (self.busy_share() * self.threads as f64 / TARGET).ceil() as usize
    }

    pub(super) fn measured(&self, threads: usize) -> Measured {
        let per_s = |n: f64| if self.steady_s > 0.0 { n / self.steady_s } else { 0.0 };
        Measured {
            threads,
            batches_per_s: per_s(self.steady as f64),
            wait_share: per_s(self.wait_s).min(1.0),
            service_s: self.busy_s / self.delivered.max(1) as f64,
        }
    }
}

fn size_of_batch<T: 'static>(batch: &T) -> u64 {
    let element = (batch as &dyn Any).downcast_ref::<Element>();
    element.map_or(size_of::<T>(), Element::nbytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_idle_are_given_back() {
        let passes = |busy_s| Passes { steady_s: 10.0, busy_s, threads: 8, ..Passes::default() };
        assert_eq!(passes(80.0).needed().min(8), 8);
        assert_eq!(passes(40.0).needed(), 5);
        assert_eq!(passes(0.1).needed(), 1);
        assert_eq!(Passes { threads: 3, ..Passes::default() }.needed().min(3), 3, "nothing is known");
    }
}
