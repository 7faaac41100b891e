//! A single run: the loop of a trainer, with a clock.

use std::task::Poll;
use std::time::{Duration, Instant};

use crate::consumer::{Consumer, Metrics, Recorder};
use crate::element::OrderHash;
use crate::{BoxIter, Element, Error, Loader, Result};
use serde::{Deserialize, Serialize};

use super::bursts::{self, Kind};
use super::device::Device;
use crate::report::TokenCount;

/// Length and consumer of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    /// Batches of the warm-up, which are not measured.
    pub(super) warmup: u64,
    /// Measured batches; the minimum if `goes_on`.
    pub(super) steps: u64,
    /// Device that takes the batches.
    pub(super) device: &'a Device,
    /// Whether a run continues after `steps` until its [kind](bursts::Kind) is known. False with a device, which sets the rate.
    pub(super) goes_on: bool,
}

impl Shape<'_> {
    /// Returns the number of batches of a run, including the warm-up.
    pub(super) fn all(self) -> u64 {
        self.warmup.saturating_add(self.steps)
    }
}

/// Figures of a single run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Run {
    /// Seconds from the start of the loader to its first batch.
    pub(super) first_batch_s: f64,
    /// Number of hashed batches, including the warm-up.
    pub(super) batches: u64,
    /// Order hash of these batches.
    pub(super) order_hash: OrderHash,
    /// Seconds that the measured steps took.
    pub(super) wall_s: f64,
    /// Seconds in `next`, for each measured step.
    pub(super) next_s: Vec<f64>,
    /// Number of measured periods, if batches arrive in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) periods: Option<usize>,
    /// Whether the run is too short for a rate.
    #[serde(default)]
    pub(super) too_short: bool,
    pub(super) bytes: u64,
    #[serde(flatten)]
    pub(super) tokens: TokenCount,
    pub(super) accelerator: Option<Metrics>,
}

impl Run {
    pub(super) fn batches_per_s(&self) -> f64 {
        self.per_s(self.next_s.len() as f64)
    }

    pub(super) fn per_s(&self, n: f64) -> f64 {
        if self.wall_s > 0.0 { n / self.wall_s } else { 0.0 }
    }
}

/// Source of the batches of a run.
pub(super) struct Feed<'a> {
    next: Box<dyn FnMut() -> Option<Result<Element>> + 'a>,
    /// Whether no batch was ready at the last request; `None` if batches are not made ahead.
    waited: Option<std::rc::Rc<std::cell::Cell<bool>>>,
}

impl<'a> Feed<'a> {
    /// Makes a feed from a loader.
    pub(super) fn of(loader: &'a mut Loader<BoxIter<Element>>) -> Self {
        let waited = loader.is_ahead().then(std::rc::Rc::default);
        let seen: Option<std::rc::Rc<std::cell::Cell<bool>>> = waited.clone();
        let next = move || {
            if let Some(seen) = &seen {
                match loader.next_within(Duration::ZERO) {
                    Poll::Ready(next) => {
                        seen.set(false);
                        return next;
                    }
                    Poll::Pending => seen.set(true),
                }
            }
            loader.next()
        };
        Self { next: Box::new(next), waited }
    }

    /// Makes a feed from batches in memory.
    pub(super) fn ready(mut batches: impl Iterator<Item = Result<Element>> + 'a) -> Self {
        Self { next: Box::new(move || batches.next()), waited: None }
    }

    /// Returns true if a batch was ready at the last request.
    fn is_ahead(&self) -> bool {
        self.waited.as_ref().is_some_and(|waited| !waited.get())
    }
}

/// Maximum number of ready batches that are taken between the warm-up and the measurement.
const MOST_READY: u64 = 64;

/// Consumes batches like a trainer: takes a batch, and reads every byte of it while the accelerator computes.
///
/// Batches that are ready after the warm-up are taken before the measurement, unless there is an accelerator.
/// They were made earlier, and would be measured as if they took no time.
///
/// # Errors
/// Errors of the batches; a configuration error if they end within the warm-up.
pub(super) fn run(
    started: Instant,
    feed: &mut Feed<'_>,
    shape: Shape<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Run> {
    let mut run = Run::default();
    let mut consumer = shape.device.start();
    let mut recorder = Recorder::new(shape.device.in_flight());
    // The hash of the batches beyond `warmup + steps`, and the tokens and bytes of each batch.
    let (mut beyond, mut sizes) = (OrderHash::default(), Vec::new());
    let mut begun = (shape.warmup == 0).then_some(0);
    // Number of measured steps after which the run may end.
    let mut enough = shape.steps;
    loop {
        if let Some(begun) = begun.filter(|begun| sizes.len() as u64 >= enough.saturating_add(*begun)) {
            let is_over = || bursts::is_over(&recorder.steps, begun as usize, run.first_batch_s);
            if !shape.goes_on || is_over() {
                break;
            }
            // Each check reads all steps, so the number of steps between checks grows.
            enough = (sizes.len() as u64 - begun).max(8) * 9 / 8;
        }
        let Some(batch) = recorder.next(|| (feed.next)()).transpose()? else { break };
        let taken = sizes.len() as u64 + 1;
        if taken == 1 {
            run.first_batch_s = started.elapsed().as_secs_f64();
        }
        let step = consumer.submit(batch.clone())?;
        if taken <= shape.all() {
            run.order_hash.update(&batch);
            run.batches = taken;
        } else {
            beyond.update(&batch);
        }
        let mut tokens = TokenCount::default();
        tokens.add(&batch);
        sizes.push((tokens, batch.nbytes() as u64));
        // A batch without rows counts as a single sample.
        let samples = batch.num_rows().map_or(1, |rows| rows as u64);
        drop(batch);
        recorder.submitted(samples, step)?;
        progress(taken.min(shape.all()));
        let drains = !shape.device.is_some() && feed.is_ahead() && taken < shape.warmup.saturating_add(MOST_READY);
        if begun.is_none() && taken >= shape.warmup && !drains {
            begun = Some(taken);
        }
    }
    let timeline = recorder.finish()?;
    // The ready batches are measured too if fewer than `steps` batches follow them.
    let begun = begun.filter(|&begun| begun.saturating_add(shape.steps) <= sizes.len() as u64).unwrap_or(shape.warmup);
    let begun = usize::try_from(begun).unwrap_or(usize::MAX);
    let steps = if shape.goes_on { usize::MAX } else { usize::try_from(shape.steps).unwrap_or(usize::MAX) };
    let Some(all) = timeline.steps().get(begun..) else { return Err(too_short(run.batches, shape)) };
    let (mut from, mut to) = (0, steps.min(all.len()));
    if shape.goes_on {
        match bursts::kind(timeline.steps(), begun, run.first_batch_s) {
            Kind::Steady => {}
            Kind::Bursts { from: first, to: last, periods } => (from, to, run.periods) = (first, last, Some(periods)),
            Kind::Unknown => run.too_short = true,
        }
    }
    let (counted, begun) = (&all[from..to], begun + from);
    let Some(first) = counted.first() else { return Err(too_short(run.batches, shape)) };
    let end = all.get(to).map_or(timeline.wall(), |step| step.asked);
    run.wall_s = end.saturating_sub(first.asked).as_secs_f64();
    run.next_s = counted.iter().map(|step| step.load().as_secs_f64()).collect();
    for (tokens, bytes) in &sizes[begun..begun + counted.len()] {
        run.tokens.real += tokens.real;
        run.tokens.cells += tokens.cells;
        run.bytes += bytes;
    }
    // Batches per second include the first step if there is no warm-up; utilisation never does.
    run.accelerator = Metrics::of(&timeline, begun.max(1)).filter(|_| shape.device.is_some());
    Ok(run)
}

fn too_short(batches: u64, shape: Shape<'_>) -> Error {
    if batches == 0 {
        return Error::config("the pipeline yields no batch")
            .help("if `batch` has `remainder: drop`, its batch_size may exceed the number of records");
    }
    let message = format!("the pipeline ends after {batches} batches, within the warm-up of {}", shape.warmup);
    Error::config(message).help("use a smaller --warmup, or a `repeat` in the pipeline")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n: usize) -> impl Iterator<Item = Result<Element>> {
        (0..n).map(|i| Ok(Element::new().with("index", crate::Array::scalar(i as i64))))
    }

    fn measure(n: usize, warmup: u64, steps: u64, step: Option<Duration>) -> Result<Run> {
        let device = Device::new(None, step).unwrap();
        run(
            Instant::now(),
            &mut Feed::ready(numbered(n)),
            Shape { warmup, steps, device: &device, goes_on: false },
            |_| {},
        )
    }

    #[test]
    fn the_hash_covers_the_warm_up_and_figures_do_not() {
        let run = measure(10, 2, 3, None).unwrap();
        assert_eq!((run.batches, run.next_s.len(), run.bytes, run.accelerator), (5, 3, 24, None));
        let mut hash = OrderHash::default();
        numbered(5).for_each(|batch| hash.update(&batch.unwrap()));
        assert_eq!(run.order_hash, hash);
        let short = measure(4, 2, 10, None).unwrap();
        assert_eq!((short.batches, short.next_s.len()), (4, 2));
        let error = measure(2, 2, 10, None).unwrap_err();
        assert_eq!(error.message(), "the pipeline ends after 2 batches, within the warm-up of 2");
        let error = measure(0, 0, 10, None).unwrap_err();
        assert_eq!(error.message(), "the pipeline yields no batch");
    }

    #[test]
    fn batches_that_lie_ready_after_the_warm_up_are_not_measured() {
        // The first twelve batches are ready; the loop waits for each of the others.
        let feed = |n: usize| {
            let waited = std::rc::Rc::new(std::cell::Cell::new(false));
            let (seen, mut batches) = (waited.clone(), numbered(n).enumerate());
            let next = move || {
                let (i, batch) = batches.next()?;
                seen.set(i >= 12);
                Some(batch)
            };
            Feed { next: Box::new(next), waited: Some(waited) }
        };
        let shape = Shape { warmup: 2, steps: 10, device: &Device::None, goes_on: false };
        let taken = std::cell::Cell::new(0);
        let run_of = |n| run(Instant::now(), &mut feed(n), shape, |_| taken.set(taken.get() + 1)).unwrap();
        let run = run_of(40);
        assert_eq!((taken.take(), run.next_s.len(), run.batches, run.bytes), (23, 10, 12, 80));
        assert_eq!(run.order_hash, measure(12, 2, 10, None).unwrap().order_hash, "of the same batches");
        let run = run_of(9);
        assert_eq!((run.next_s.len(), run.batches), (7, 9), "all that there is");
    }

    #[test]
    fn an_error_of_the_pipeline_is_the_error_of_the_run() {
        let mut batches = Feed::ready([Err(Error::data("bad"))].into_iter());
        let shape = Shape { warmup: 0, steps: 1, device: &Device::None, goes_on: false };
        assert_eq!(run(Instant::now(), &mut batches, shape, |_| {}).unwrap_err().message(), "bad");
    }

    #[test]
    fn a_step_that_sleeps_gives_metrics() {
        let slept = measure(4, 0, 4, Some(Duration::from_millis(2))).unwrap().accelerator.unwrap();
        assert!(slept.utilisation > 0.0 && slept.utilisation <= 1.0 && slept.stall < 1.0, "{slept:?}");
        assert!(slept.step_ms >= 2.0 && slept.steps == 3, "{slept:?}");
        assert_eq!(measure(4, 2, 2, Some(Duration::ZERO)).unwrap().accelerator.unwrap().steps, 2);
        assert_eq!(measure(1, 0, 1, Some(Duration::ZERO)).unwrap().accelerator, None, "nothing is left");
    }
}
