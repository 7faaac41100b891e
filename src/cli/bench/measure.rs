//! One run: the loop of a trainer, with a clock.

use std::time::Instant;

use crate::consumer::{Consumer, Metrics, Recorder};
use crate::element::OrderHash;
use crate::{Element, Error, ErrorKind, Result};
use serde::Serialize;

use super::device::Device;
use crate::cli::interrupt;
use crate::cli::tokens::TokenCount;

/// How long to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    /// Batches before it counts.
    pub(super) warmup: u64,
    /// Batches that count.
    pub(super) steps: u64,
    /// What takes them.
    pub(super) device: &'a Device,
}

impl Shape<'_> {
    /// Batches of a run.
    pub(super) fn all(self) -> u64 {
        self.warmup.saturating_add(self.steps)
    }
}

/// What one run measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Run {
    /// From the start of the loader to its first batch.
    pub(super) first_batch_s: f64,
    /// Batches in all, those of the warm-up too.
    pub(super) batches: u64,
    /// Of all batches.
    pub(super) order_hash: OrderHash,
    /// Seconds of the steps that count.
    pub(super) wall_s: f64,
    /// Seconds in `next` of each of them.
    pub(super) next_s: Vec<f64>,
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

/// Consumes `batches` as a trainer does: takes one, and reads every byte of it while the accelerator computes.
///
/// # Errors
/// Those of the batches; if they end within the warm-up; if somebody interrupts.
pub(super) fn run(
    started: Instant,
    batches: &mut dyn Iterator<Item = Result<Element>>,
    shape: Shape<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Run> {
    let mut run = Run::default();
    let mut consumer = shape.device.start();
    let mut recorder = Recorder::new(shape.device.in_flight());
    while run.batches < shape.all() {
        if interrupt::asked() {
            return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
        }
        let Some(batch) = recorder.next(|| batches.next()).transpose()? else { break };
        if run.batches == 0 {
            run.first_batch_s = started.elapsed().as_secs_f64();
        }
        let step = consumer.submit(batch.clone())?;
        run.order_hash.update(&batch);
        if run.batches >= shape.warmup {
            run.tokens.add(&batch);
            run.bytes += batch.nbytes() as u64;
        }
        // What has no rows is a sample itself.
        let samples = batch.num_rows().map_or(1, |rows| rows as u64);
        drop(batch);
        recorder.submitted(samples, step)?;
        run.batches += 1;
        progress(run.batches);
    }
    let timeline = recorder.finish()?;
    let warmup = usize::try_from(shape.warmup).unwrap_or(usize::MAX);
    let Some(counted @ [first, ..]) = timeline.steps().get(warmup..) else {
        let message =
            format!("the pipeline ends after {} batches, within the warm-up of {}", run.batches, shape.warmup);
        return Err(Error::config(message).help("a smaller --warmup, or a `repeat` in the pipeline"));
    };
    run.wall_s = timeline.wall().saturating_sub(first.asked).as_secs_f64();
    run.next_s = counted.iter().map(|step| step.load().as_secs_f64()).collect();
    // Batches per second keep the first step, where there is no warm-up; utilisation does not.
    run.accelerator = Metrics::of(&timeline, warmup.max(1)).filter(|_| shape.device.is_some());
    Ok(run)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn numbered(n: usize) -> impl Iterator<Item = Result<Element>> {
        (0..n).map(|i| Ok(Element::new().with("index", crate::Array::scalar(i as i64))))
    }

    fn measure(n: usize, warmup: u64, steps: u64, step: Option<Duration>) -> Result<Run> {
        let device = Device::new(None, step).unwrap();
        run(Instant::now(), &mut numbered(n), Shape { warmup, steps, device: &device }, |_| {})
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
    }

    #[test]
    fn an_error_of_the_pipeline_is_the_error_of_the_run() {
        let mut batches = [Err(Error::data("bad"))].into_iter();
        let shape = Shape { warmup: 0, steps: 1, device: &Device::None };
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
