//! One run: the loop of a trainer, with a clock.

use std::time::{Duration, Instant};

use crate::element::OrderHash;
use crate::{Element, Error, ErrorKind, Result};
use serde::Serialize;

use crate::cli::interrupt;
use crate::cli::tokens::TokenCount;

/// How long to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Batches before it counts.
    pub(super) warmup: u64,
    /// Batches that count.
    pub(super) steps: u64,
    /// What the stand-in for an accelerator takes for each.
    pub(super) step: Option<Duration>,
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
    pub(super) accelerator: Option<Accelerator>,
}

/// How well the stand-in for an accelerator was used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Accelerator {
    /// Share of the time in which it computed.
    pub(super) utilisation: f64,
    /// Share of the time that it waited for a batch. The rest is the loop's own.
    pub(super) stall: f64,
}

impl Run {
    pub(super) fn batches_per_s(&self) -> f64 {
        self.per_s(self.next_s.len() as f64)
    }

    pub(super) fn per_s(&self, n: f64) -> f64 {
        if self.wall_s > 0.0 { n / self.wall_s } else { 0.0 }
    }
}

/// Consumes `batches` as a trainer does: takes one, reads every byte of it, computes.
///
/// # Errors
/// Those of the batches; if they end within the warm-up; if somebody interrupts.
pub(super) fn run(
    started: Instant,
    batches: &mut dyn Iterator<Item = Result<Element>>,
    shape: Shape,
    mut progress: impl FnMut(u64),
) -> Result<Run> {
    let mut run = Run::default();
    let mut counting = Instant::now();
    let mut first_step = Duration::ZERO;
    while run.batches < shape.warmup.saturating_add(shape.steps) {
        if interrupt::asked() {
            return Err(Error::new(ErrorKind::Cancelled, "interrupted"));
        }
        let start = Instant::now();
        if run.batches == shape.warmup {
            counting = start;
        }
        let Some(batch) = batches.next().transpose()? else { break };
        let next = start.elapsed();
        if run.batches == 0 {
            run.first_batch_s = started.elapsed().as_secs_f64();
        }
        run.order_hash.update(&batch);
        if run.batches >= shape.warmup {
            run.next_s.push(next.as_secs_f64());
            run.tokens.add(&batch);
            run.bytes += batch.nbytes() as u64;
        }
        drop(batch);
        if let Some(step) = shape.step {
            std::thread::sleep(step);
        }
        if run.batches == 0 {
            first_step = start.elapsed();
        }
        run.batches += 1;
        run.wall_s = counting.elapsed().as_secs_f64();
        progress(run.batches);
    }
    if run.next_s.is_empty() {
        let message =
            format!("the pipeline ends after {} batches, within the warm-up of {}", run.batches, shape.warmup);
        return Err(Error::config(message).help("a smaller --warmup, or a `repeat` in the pipeline"));
    }
    run.accelerator = shape.step.and_then(|step| accelerator(&run, shape, step, first_step));
    Ok(run)
}

/// AU = compute time / running time, without the first step, so that start-up does not blur the steady state.
///
/// Source: MLPerf Storage v2.0, *Submission guidelines*, section 4 (mlcommons/storage); what its tool leaves out is the
/// whole first step (`metric_exclude_start_steps = 1` in argonne-lcf/dlio_benchmark). Batches per second keep it.
fn accelerator(run: &Run, shape: Shape, step: Duration, first_step: Duration) -> Option<Accelerator> {
    // A warm-up leaves the first step out already.
    let (skip, wall) = if shape.warmup > 0 { (0, run.wall_s) } else { (1, run.wall_s - first_step.as_secs_f64()) };
    let waits = run.next_s.get(skip..).filter(|waits| !waits.is_empty() && wall > 0.0)?;
    let share = |seconds: f64| (seconds / wall).min(1.0);
    Some(Accelerator { utilisation: share(waits.len() as f64 * step.as_secs_f64()), stall: share(waits.iter().sum()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n: usize) -> impl Iterator<Item = Result<Element>> {
        (0..n).map(|i| Ok(Element::new().with("index", crate::Array::scalar(i as i64))))
    }

    fn measure(n: usize, warmup: u64, steps: u64, step: Option<Duration>) -> Result<Run> {
        run(Instant::now(), &mut numbered(n), Shape { warmup, steps, step }, |_| {})
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
        let shape = Shape { warmup: 0, steps: 1, step: None };
        assert_eq!(run(Instant::now(), &mut batches, shape, |_| {}).unwrap_err().message(), "bad");
    }

    #[test]
    fn utilisation_leaves_the_first_step_out() {
        let step = Duration::from_secs(1);
        let of = |warmup, next_s: &[f64], wall_s| {
            let run = Run { next_s: next_s.to_vec(), wall_s, ..Run::default() };
            accelerator(&run, Shape { warmup, steps: 9, step: Some(step) }, step, Duration::from_secs(11))
        };
        // The first waits 10 s and computes 1 s; three more wait 1 s each.
        let after = of(0, &[10.0, 1.0, 1.0, 1.0], 17.0).unwrap();
        assert_eq!(after, Accelerator { utilisation: 0.5, stall: 0.5 });
        assert_eq!(of(5, &[1.0, 1.0, 1.0], 6.0), Some(after));
        assert_eq!(of(0, &[10.0], 11.0), None, "nothing is left");
        let slept = measure(4, 0, 4, Some(Duration::from_millis(2))).unwrap().accelerator.unwrap();
        assert!(slept.utilisation > 0.0 && slept.utilisation <= 1.0 && slept.stall < 1.0, "{slept:?}");
    }
}
