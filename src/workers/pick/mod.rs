//! Options chosen by a short trial run.

#[cfg(test)]
mod scenes;
mod trial;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use self::trial::{Passes, Trial};
use super::MpOptions;
use super::budget::available;
use crate::dataset::IterDataset;
use crate::error::{Error, Result};
use crate::tune::{Decision, Knob, MANY_THREADS};

/// Planned share of time in which a thread is busy.
const TARGET: f64 = 0.85;
/// Minimum speedup for which more threads are kept.
const WORTH: f64 = 1.03;

/// Limits on the options chosen by [`pick_performance_config`].
#[derive(Clone, Debug)]
#[must_use = "limits do nothing until they are given to `pick_performance_config`"]
pub struct PickLimits {
    ram_budget: Option<u64>,
    max_threads: Option<usize>,
    max_buffer_size: usize,
    time: Duration,
    step: Duration,
}

impl Default for PickLimits {
    fn default() -> Self {
        Self {
            ram_budget: None,
            max_threads: None,
            max_buffer_size: 4,
            time: Duration::from_secs(20),
            step: Duration::ZERO,
        }
    }
}

impl PickLimits {
    /// Returns the default limits:
    /// - a quarter of the available memory,
    /// - one thread per core, and more if elements wait,
    /// - at most four batches ahead,
    /// - a trial of 20 seconds,
    /// - a consumer without work.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the bytes for worker processes, memory shared with this process, and batches that are ready.
        pub ram_budget(bytes: u64) => ram_budget = Some(bytes);

        /// Sets the maximum number of threads. The default is one per core, and up to 256 if elements mostly wait.
        /// Corresponds to Grain's maximum number of workers, with threads in place of processes.
        pub max_threads(threads: usize) => max_threads = Some(threads);

        /// Sets the maximum number of batches that are ready.
        pub max_buffer_size(batches: usize) => max_buffer_size = batches.max(1);

        /// Sets the duration of the trial, without start-up.
        pub time: Duration;

        /// Sets the consumer's work per batch, simulated by sleeping. Throughput beyond the need of such a consumer
        /// counts for nothing.
        pub step: Duration;
    }
}

/// Options chosen by [`pick_performance_config`], with their reasons.
#[derive(Clone, Debug, Serialize)]
pub struct PerformanceConfig {
    /// Worker processes.
    pub workers: usize,
    /// Threads of each worker.
    pub threads_per_worker: usize,
    /// Batches ready for the consumer: the argument for [`LoaderBuilder::buffer`](crate::LoaderBuilder::buffer).
    pub buffer: usize,
    /// Bytes for the workers and the memory that they share with this process: the limit minus the ready batches.
    pub ram_budget: u64,
    /// Bytes of shared memory, part of `ram_budget`.
    pub slab_bytes: u64,
    /// Limit of each worker's private memory in bytes, part of `ram_budget`.
    pub worker_heap_bytes: u64,
    /// Peak bytes of shared memory in use.
    pub slab_used_bytes: u64,
    /// Peak bytes of private memory of a worker.
    pub heap_used_bytes: u64,
    /// Ranges of elements in progress or ready at the end; every run tunes this number again.
    pub window: usize,
    /// Bytes of the largest batch.
    pub batch_bytes: u64,
    /// Measurement with one thread.
    pub start: Measured,
    /// Measurement with the chosen options.
    pub chosen: Measured,
    /// Changes during the trial, with their reasons.
    pub decisions: Vec<Decision>,
}

/// A setting and its measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of threads that evaluated elements.
    pub threads: usize,
    /// Batches per second, excluding the wait for the first batch.
    pub batches_per_s: f64,
    /// Share of time that the consumer waited, excluding the wait for the first batch.
    pub wait_share: f64,
    /// Thread-seconds of work per batch.
    pub service_s: f64,
}

impl PerformanceConfig {
    /// Returns the chosen options for [`mp_prefetch`](super::mp_prefetch).
    pub fn options(&self) -> MpOptions {
        MpOptions::auto().workers(self.workers).threads_per_worker(self.threads_per_worker).ram_budget(self.ram_budget)
    }
}

/// Chooses options for the pipeline that `factory` builds from `cfg`, by a short trial run.
///
/// The first quarter of the time runs one thread, to measure the work per batch. The next half runs with tuning, and
/// starts with the number of threads computed from that measurement. The last quarter runs the fewest threads that
/// should be sufficient, as a check. A pipeline that ends early starts again.
///
/// Corresponds to Grain's `pick_performance_config`, which measures the size of five elements and divides the budget by
/// that size.
///
/// ```
/// use std::time::Duration;
/// use gristmill::dataset::map::Range;
/// use gristmill::workers::{PickLimits, mp_prefetch, pick_performance_config};
/// use gristmill::{Result, prelude::*};
///
/// fn pipeline(end: i64) -> Result<impl IterDataset<Item = Vec<i64>>> {
///     Ok(Range::new(0, end).map(|x| x * x).to_iter().batch(32))
/// }
///
/// let limits = PickLimits::new().ram_budget(512 << 20).time(Duration::from_millis(100));
/// let config = pick_performance_config(pipeline, 10_000, &limits)?;
/// assert!(config.ram_budget <= 512 << 20);
/// let loader = mp_prefetch(pipeline, 10_000, config.options())?.buffer(config.buffer).build()?;
/// # drop(loader);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Errors of the pipeline; [`ErrorKind::Config`](crate::ErrorKind::Config) if the budget is too small, with the
/// arithmetic, and if the pipeline is empty.
pub fn pick_performance_config<C, D>(
    factory: fn(C) -> Result<D>,
    cfg: C,
    limits: &PickLimits,
) -> Result<PerformanceConfig>
where
    C: Serialize + DeserializeOwned + Clone,
    D: IterDataset<Item: 'static> + 'static,
{
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let budget = limits.ram_budget.unwrap_or_else(|| available() / 4);
    let trial = Trial { factory, cfg, limits, budget, cores };
    trial.config(choose(limits, cores, |threads, tuned, time| trial.run(threads, tuned, time))?)
}

/// Chosen number of threads, with the runs that led to it and the reasons.
struct Choice {
    runs: [Passes; 3],
    start: Measured,
    chosen: Measured,
    decisions: Vec<Decision>,
}

/// Chooses the number of threads from three runs; `run` takes a number of threads, whether to tune, and a duration.
fn choose(
    limits: &PickLimits,
    cores: usize,
    mut run: impl FnMut(usize, bool, Duration) -> Result<Passes>,
) -> Result<Choice> {
    let first = run(1, false, limits.time / 4)?;
    if first.delivered == 0 {
        return Err(Error::config("the pipeline is empty").help("there is nothing to choose options for"));
    }
    let start = first.measured(1);
    let mut decisions = Vec::new();
    let most = limits.max_threads.unwrap_or_else(|| first.most_on(cores)).max(1);
    let law = threads_for(&start, limits.step, most);
    if law > 1 {
        decisions.push(change(first.wall_s, 1, law, law_reason(&start, limits.step), start.batches_per_s));
    }
    let tuned = run(law, true, limits.time / 2)?;
    let (before_s, tuned_at) = (first.wall_s, tuned.measured(tuned.threads));
    decisions.extend(tuned.decisions.iter().cloned().map(|d| Decision { at_s: d.at_s + before_s, ..d }));
    let threads = tuned.needed().clamp(1, tuned.threads);
    if threads < tuned.threads {
        let reason = format!("the threads were busy {:.0} %: {threads} do as much", 100.0 * tuned.busy_share());
        decisions.push(change(before_s + tuned.wall_s, tuned.threads, threads, reason, tuned_at.batches_per_s));
    }
    let last = run(threads, false, limits.time / 4)?;
    let mut chosen = last.measured(threads);
    let at_s = before_s + tuned.wall_s + last.wall_s;
    if chosen.threads < tuned_at.threads && WORTH * chosen.batches_per_s < tuned_at.batches_per_s {
        let reason = format!("{threads} did {:+.0} % after all", percent_more(chosen, tuned_at));
        decisions.push(change(at_s, threads, tuned_at.threads, reason, chosen.batches_per_s));
        chosen = tuned_at;
    }
    if chosen.threads > 1 && chosen.batches_per_s < WORTH * start.batches_per_s {
        let reason = format!("{} brought {:+.0} %: one is enough", chosen.threads, percent_more(chosen, start));
        decisions.push(change(at_s, chosen.threads, 1, reason, chosen.batches_per_s));
        chosen = start;
    }
    Ok(Choice { runs: [first, tuned, last], start, chosen, decisions })
}

/// Returns the gain of `a` over `b` in percent.
fn percent_more(a: Measured, b: Measured) -> f64 {
    100.0 * (a.batches_per_s / b.batches_per_s.max(f64::MIN_POSITIVE) - 1.0)
}

fn law_reason(start: &Measured, step: Duration) -> String {
    let consumer = match step.as_secs_f64() * 1e3 {
        0.0 => "and the consumer takes all it gets".to_owned(),
        ms => format!("and the consumer takes one every {ms:.2} ms"),
    };
    format!("one thread works {:.2} ms on a batch, {consumer}", start.service_s * 1e3)
}

fn change(at_s: f64, from: usize, to: usize, reason: String, rate_before: f64) -> Decision {
    Decision { at_s, knob: Knob::Threads, from, to, reason, rate_before, rate_after: None }
}

/// Returns the number of threads that feed the consumer, if each thread works `TARGET` seconds per second.
fn threads_for(start: &Measured, step: Duration, most: usize) -> usize {
    let demand = if step.is_zero() { f64::INFINITY } else { 1.0 / step.as_secs_f64() };
    let needed = (demand * start.service_s / TARGET).ceil();
    // An element that costs no thread time gains nothing from more threads.
    if needed.is_nan() { 1 } else { (needed.min(1e6) as usize).clamp(1, most) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Range;
    use crate::{Element, MapDatasetExt};

    fn batches(end: i64) -> Result<impl IterDataset<Item = Element>> {
        let element = |x: i64| Element::new().with("x", crate::Array::scalar(x));
        Ok(Range::new(0, end).map(element).to_iter().batch(4))
    }

    fn limits() -> PickLimits {
        PickLimits::new().ram_budget(256 << 20).time(Duration::from_millis(100)).max_threads(4)
    }

    #[test]
    fn the_options_that_are_chosen_are_within_the_limits_and_can_be_followed() {
        let config = pick_performance_config(batches, 100_000, &limits()).unwrap();
        assert_eq!((config.workers, config.start.threads, config.buffer), (1, 1, 4));
        assert!((1..=4).contains(&config.threads_per_worker), "{config:?}");
        assert_eq!(config.decisions.last().map_or(1, |decision| decision.to), config.threads_per_worker, "{config:?}");
        let ready = config.batch_bytes * (config.buffer as u64 + 2);
        assert!(config.slab_bytes + config.worker_heap_bytes + ready <= 256 << 20, "{config:?}");
        assert!(config.ram_budget + ready <= 256 << 20 && config.batch_bytes == 32);
        let loader = super::super::mp_prefetch(batches, 40, config.options()).unwrap().build().unwrap();
        assert_eq!(loader.map(Result::unwrap).count(), 10);
        let config = pick_performance_config(batches, 40, &limits().max_buffer_size(2)).unwrap();
        assert_eq!(config.buffer, 2, "{config:?}");
    }

    #[test]
    fn threads_follow_from_work_and_demand() {
        let one = |service_s| Measured { service_s, ..Measured::default() };
        assert_eq!(threads_for(&one(0.01), Duration::from_millis(5), 64), 3);
        assert_eq!(threads_for(&one(0.01), Duration::from_millis(5), 2), 2);
        assert_eq!(threads_for(&one(0.001), Duration::from_millis(5), 8), 1);
        assert_eq!(threads_for(&one(0.001), Duration::ZERO, 8), 8);
        assert_eq!(threads_for(&one(0.0), Duration::ZERO, 8), 1);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = pick_performance_config(batches, 100, &limits().ram_budget(1 << 20)).unwrap_err();
        assert!(error.message().starts_with("ram_budget is 1 MiB"), "{error}");
        let error = pick_performance_config(batches, 0, &limits()).unwrap_err();
        assert_eq!(error.message(), "the pipeline is empty");
    }
}
