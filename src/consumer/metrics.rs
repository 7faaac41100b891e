//! Figures of a timeline, computed as pure functions of the times in it.

use serde::{Deserialize, Serialize};

use super::{Step, Timeline};
use crate::stats::Stats;

/// Figures that describe how well the device was used.
///
/// Shares are fractions of the counted time, from 0 to 1. `Display` prints a table for people.
///
/// The counted time is the loop's wall time without its first steps, which wait for the pipeline to start: `wall - (sum
/// of the times of the excluded steps)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// Number of counted steps.
    pub steps: u64,
    /// Counted time in seconds.
    pub wall_s: f64,
    /// AU, accelerator utilisation: the share of the counted time in which the device computed.
    ///
    /// Source: `compute_metrics_train` of DLIO (argonne-lcf/dlio_benchmark), the benchmark of MLPerf Storage. MLPerf
    /// Storage sets `metric_exclude_start_steps` to 1, and its loop waits for every step. With several steps in flight,
    /// the time of a step starts at the end of the step before.
    pub utilisation: f64,
    /// Device stall: the share of the counted time in which the device was idle because its next step could not begin
    /// yet.
    pub stall: f64,
    /// Share of the counted time that the loop spent in `next`. With steps in flight, only part of this time stalls the
    /// device.
    pub input_bound_share: f64,
    /// Class of `input_bound_share`, in the terms of TensorFlow's profiler.
    pub input_bound: InputBound,
    /// Median time of `next`, in microseconds.
    pub next_p50_us: f64,
    /// 99th percentile of the time of `next`, in microseconds.
    pub next_p99_us: f64,
    /// Share of the calls of `next` that took more than 50 µs. A call takes less if its batch is ready.
    pub next_over_50_us: f64,
    /// Share of the calls of `next` that took more than a millisecond.
    pub next_over_1_ms: f64,
    /// Mean time of a step on the device, in milliseconds.
    pub step_ms: f64,
    /// Steps per second.
    pub steps_per_s: f64,
    /// Samples per second; `None` if no samples were counted.
    ///
    /// DIFFERENCE: DLIO always subtracts two steps from the counted steps, even if it excludes a different number.
    pub samples_per_s: Option<f64>,
    /// Speed relative to the same loop over a single batch that stays in memory; `None` if that loop was not run.
    ///
    /// The fraction is 1 at equal speed. It requires no clock on the device, so quote this figure for a real device.
    pub relative_speed: Option<f64>,
}

/// Degree to which a loop depends on its input.
///
/// Source: the input pipeline analyzer of TensorFlow's profiler, whose thresholds are 5 and 20 % of the step time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputBound {
    /// Less than 5 % of the time.
    Not,
    /// At least 5 % of the time.
    Moderately,
    /// At least 20 % of the time.
    Highly,
}

impl InputBound {
    /// Returns the class of a share of the time.
    pub fn of(share: f64) -> Self {
        match share {
            share if share >= 0.20 => Self::Highly,
            share if share >= 0.05 => Self::Moderately,
            _ => Self::Not,
        }
    }

    /// Returns the class in words, such as `not input-bound`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Not => "not input-bound",
            Self::Moderately => "moderately input-bound",
            Self::Highly => "highly input-bound",
        }
    }
}

impl Metrics {
    /// Computes the figures of `timeline` without its first `exclude_first` steps; `None` if no steps or no time are
    /// left.
    pub fn of(timeline: &Timeline, exclude_first: usize) -> Option<Self> {
        let excluded = timeline.with_free().take(exclude_first).map(|(free, step)| step.process(free)).sum();
        let wall = timeline.wall().saturating_sub(excluded).as_secs_f64();
        let counted = timeline.steps().get(exclude_first..).filter(|steps| !steps.is_empty() && wall > 0.0)?;
        let device = || timeline.with_free().skip(exclude_first);
        let compute: f64 = device().map(|(free, step)| step.compute(free).as_secs_f64()).sum();
        let stall: f64 = device().map(|(free, step)| step.stall(free).as_secs_f64()).sum();
        let next_us: Vec<f64> = counted.iter().map(|step| step.load().as_secs_f64() * 1e6).collect();
        let next = Stats::of(&next_us)?;
        let n = counted.len() as f64;
        let share = |seconds: f64| (seconds / wall).min(1.0);
        let over = |us: f64| next_us.iter().filter(|&&next| next > us).count() as f64 / n;
        let samples: u64 = counted.iter().map(|step: &Step| step.samples).sum();
        let input_bound_share = share(next_us.iter().sum::<f64>() / 1e6);
        Some(Self {
            steps: counted.len() as u64,
            wall_s: wall,
            utilisation: share(compute),
            stall: share(stall),
            input_bound_share,
            input_bound: InputBound::of(input_bound_share),
            next_p50_us: next.p50,
            next_p99_us: next.p99,
            next_over_50_us: over(50.0),
            next_over_1_ms: over(1000.0),
            step_ms: compute * 1e3 / n,
            steps_per_s: n / wall,
            samples_per_s: (samples > 0).then(|| samples as f64 / wall),
            relative_speed: None,
        })
    }

    /// Sets `relative_speed` by comparison with `resident`, the same loop over a single batch that stays in memory.
    #[must_use]
    pub fn beside(mut self, resident: &Self) -> Self {
        self.relative_speed = (resident.steps_per_s > 0.0).then(|| self.steps_per_s / resident.steps_per_s);
        self
    }

    /// Returns the mean of every figure over `runs`, as MLPerf Storage does over five runs; `None` if `runs` is empty.
    pub fn mean(runs: &[Self]) -> Option<Self> {
        let n = runs.len() as f64;
        let mean = |figure: fn(&Self) -> f64| runs.iter().map(figure).sum::<f64>() / n;
        let known = |figure: fn(&Self) -> Option<f64>| -> Option<f64> {
            runs.iter().map(figure).sum::<Option<f64>>().map(|sum| sum / n)
        };
        let input_bound_share = mean(|run| run.input_bound_share);
        runs.first().map(|first| Self {
            steps: first.steps,
            wall_s: mean(|run| run.wall_s),
            utilisation: mean(|run| run.utilisation),
            stall: mean(|run| run.stall),
            input_bound_share,
            input_bound: InputBound::of(input_bound_share),
            next_p50_us: mean(|run| run.next_p50_us),
            next_p99_us: mean(|run| run.next_p99_us),
            next_over_50_us: mean(|run| run.next_over_50_us),
            next_over_1_ms: mean(|run| run.next_over_1_ms),
            step_ms: mean(|run| run.step_ms),
            steps_per_s: mean(|run| run.steps_per_s),
            samples_per_s: known(|run| run.samples_per_s),
            relative_speed: known(|run| run.relative_speed),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms / 1e3)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    /// Returns a timeline of steps `[asked, got, ready, done]` in milliseconds, with ten samples per step.
    fn timeline(steps: &[[f64; 4]], wall: f64) -> Timeline {
        let step = |[asked, got, ready, done]: &[f64; 4]| Step {
            asked: ms(*asked),
            got: ms(*got),
            ready: ms(*ready),
            done: ms(*done),
            samples: 10,
        };
        Timeline::new(steps.iter().map(step), ms(wall))
    }

    /// The loop of DLIO. Its loads take 50, 10, 0.04 and 10 ms; each step computes for 10 ms. The loop itself takes
    /// 0.96 ms before the third step and 9 ms after the last.
    const WAITS: [[f64; 4]; 4] =
        [[0.0, 50.0, 50.0, 60.0], [60.0, 70.0, 70.0, 80.0], [80.96, 81.0, 81.0, 91.0], [91.0, 101.0, 101.0, 111.0]];

    #[test]
    fn a_loop_that_waits_for_every_step() {
        let metrics = Metrics::of(&timeline(&WAITS, 120.0), 1).unwrap();
        assert_eq!(metrics.steps, 3);
        // All but the 60 ms of the first step.
        near(metrics.wall_s, 0.060);
        near(metrics.utilisation, 30.0 / 60.0);
        // 10 ms before the second step, 1 before the third, 10 before the fourth.
        near(metrics.stall, 21.0 / 60.0);
        near(metrics.input_bound_share, 20.04 / 60.0);
        assert_eq!(metrics.input_bound, InputBound::Highly);
        near(metrics.next_p50_us, 10_000.0);
        near(metrics.next_over_50_us, 2.0 / 3.0);
        near(metrics.next_over_1_ms, 2.0 / 3.0);
        near(metrics.step_ms, 10.0);
        near(metrics.steps_per_s, 50.0);
        near(metrics.samples_per_s.unwrap(), 500.0);
    }

    #[test]
    fn a_slow_first_step_does_not_count() {
        // The first step waits 10 s and computes 1 s; three more steps wait 1 s each.
        let s = |asked: f64, next: f64| [asked, asked + next, asked + next, asked + next + 1.0].map(|s| s * 1e3);
        let steps = [s(0.0, 10.0), s(11.0, 1.0), s(13.0, 1.0), s(15.0, 1.0)];
        let metrics = Metrics::of(&timeline(&steps, 17_000.0), 1).unwrap();
        near(metrics.utilisation, 0.5);
        near(metrics.stall, 0.5);
        assert_eq!(Metrics::of(&timeline(&steps[..1], 11_000.0), 1), None, "nothing is left");
    }

    #[test]
    fn how_many_steps_are_left_out() {
        let of = |exclude| Metrics::of(&timeline(&WAITS, 120.0), exclude);
        near(of(0).unwrap().utilisation, 40.0 / 120.0);
        near(of(0).unwrap().stall, 71.0 / 120.0);
        // Excludes 60 and 20 ms. The 0.96 ms between the steps belongs to no step and still counts.
        near(of(2).unwrap().utilisation, 20.0 / 40.0);
        near(of(3).unwrap().wall_s, 120e-3 - (60.0 + 20.0 + 10.04) / 1e3);
        assert_eq!(of(4), None);
        assert_eq!(of(99), None);
        assert_eq!(Metrics::of(&Timeline::default(), 0), None);
    }

    /// With two steps in flight, the loop waits in `next` most of the time, but the device hardly waits.
    #[test]
    fn a_device_with_steps_in_flight_waits_less_than_the_loop() {
        let steps =
            [[0.0, 8.0, 9.0, 19.0], [9.0, 17.0, 18.0, 29.0], [18.0, 26.0, 27.0, 39.0], [29.0, 39.5, 40.0, 50.0]];
        let metrics = Metrics::of(&timeline(&steps, 50.0), 1).unwrap();
        // From 19 to 50 ms, the device computes except for the millisecond before the fourth step.
        near(metrics.wall_s, 31e-3);
        near(metrics.utilisation, 30.0 / 31.0);
        near(metrics.stall, 1.0 / 31.0);
        near(metrics.input_bound_share, (8.0 + 8.0 + 10.5) / 31.0);
        assert_eq!(metrics.input_bound, InputBound::Highly);
        near(metrics.step_ms, 10.0);
    }

    #[test]
    fn classes_begin_at_5_and_at_20_percent() {
        use InputBound::*;
        assert_eq!(
            [0.0, 0.0499, 0.05, 0.1999, 0.2, 1.0].map(InputBound::of),
            [Not, Not, Moderately, Moderately, Highly, Highly]
        );
    }

    #[test]
    fn beside_a_batch_in_memory_and_over_several_runs() {
        let slow = Metrics::of(&timeline(&WAITS, 120.0), 1).unwrap();
        let resident: Vec<[f64; 4]> = [0.0, 10.0, 20.0, 30.0].map(|at| [at, at, at, at + 10.0]).into();
        let resident = Metrics::of(&timeline(&resident, 40.0), 1).unwrap();
        near(resident.utilisation, 1.0);
        let slow = slow.beside(&resident);
        near(slow.relative_speed.unwrap(), 0.5);
        let mean = Metrics::mean(&[slow.clone(), resident.clone().beside(&resident)]).unwrap();
        near(mean.utilisation, 0.75);
        near(mean.input_bound_share, 20.04 / 120.0);
        assert_eq!(mean.input_bound, InputBound::Moderately);
        near(mean.relative_speed.unwrap(), 0.75);
        assert_eq!(Metrics::mean(&[slow, resident]).unwrap().relative_speed, None, "not known of all");
        assert_eq!(Metrics::mean(&[]), None);
    }

    #[test]
    fn without_samples_there_is_no_rate_of_them() {
        let step = Step { done: ms(1.0), ..Step::default() };
        assert_eq!(Metrics::of(&Timeline::new([step], ms(1.0)), 0).unwrap().samples_per_s, None);
    }
}
