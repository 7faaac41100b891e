//! Text of the metrics for people: a table of at most 100 columns, and a sentence that explains them.

use super::{InputBound, Metrics};
use crate::report::format::{count, percent, time};

/// Share of stall time from which the verdict reports a stall.
const FINE: f64 = 0.05;

impl Metrics {
    /// Returns a sentence that explains the metrics.
    pub fn verdict(&self) -> String {
        let (stall, next) = (percent(self.stall), percent(self.input_bound_share));
        if self.stall >= FINE && self.input_bound_share >= self.stall / 2.0 {
            return format!(
                "the device stood still for {stall} of the time, and the loop waited for batches: {}",
                self.input_bound.as_str()
            );
        }
        if self.stall >= FINE {
            return format!(
                "the device stood still for {stall} of the time, but next() took only {next}: the batches are not late, \
                 the loop's work between them takes the time"
            );
        }
        if self.input_bound > InputBound::Not {
            return format!(
                "the loop waits for batches, but far enough ahead: the device computed {} of the time",
                percent(self.utilisation)
            );
        }
        format!("the device does not wait: it computed {} of the time", percent(self.utilisation))
    }
}

display_as!(Metrics, |self, f| {
    let mut row = |name: &str, value: String, means: String| writeln!(f, "{name:<28}{value:>9}  {means}");
    row("accelerator utilisation, AU", percent(self.utilisation), "of the time the device computed".into())?;
    if let Some(share) = self.relative_speed {
        row("relative speed", percent(share), "of the speed with one batch that stays in memory".into())?;
    }
    row("device stall", percent(self.stall), "of the time it stood still before a step".into())?;
    row(
        "input-bound",
        percent(self.input_bound_share),
        format!("of the time the loop was in next(): {}", self.input_bound.as_str()),
    )?;
    row(
        "next(), median",
        time(self.next_p50_us),
        format!(
            "p99 {} · {} over 50 µs · {} over 1 ms",
            time(self.next_p99_us),
            percent(self.next_over_50_us),
            percent(self.next_over_1_ms)
        ),
    )?;
    let samples = self.samples_per_s.map_or_else(String::new, |rate| format!(" · {} samples/s", count(rate)));
    row(
        "a step on the device",
        time(self.step_ms * 1e3),
        format!("{} steps in {:.1} s · {} steps/s{samples}", self.steps, self.wall_s, count(self.steps_per_s)),
    )?;
    write!(f, "VERDICT  {}", self.verdict())
});

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(utilisation: f64, stall: f64, input_bound_share: f64) -> Metrics {
        Metrics {
            steps: 499,
            wall_s: 2.531,
            utilisation,
            stall,
            input_bound_share,
            input_bound: InputBound::of(input_bound_share),
            next_p50_us: 3.1,
            next_p99_us: 812.0,
            next_over_50_us: 0.012,
            next_over_1_ms: 0.0,
            step_ms: 5.043,
            steps_per_s: 197.2,
            samples_per_s: Some(6310.0),
            relative_speed: None,
        }
    }

    #[test]
    fn a_table_and_a_verdict() {
        let mut all = metrics(0.994, 0.006, 0.004);
        all.relative_speed = Some(0.998);
        let text = all.to_string();
        insta::assert_snapshot!(text, @r"
        accelerator utilisation, AU    99.4 %  of the time the device computed
        relative speed                 99.8 %  of the speed with one batch that stays in memory
        device stall                    0.6 %  of the time it stood still before a step
        input-bound                     0.4 %  of the time the loop was in next(): not input-bound
        next(), median                 3.1 µs  p99 812.0 µs · 1.2 % over 50 µs · 0.0 % over 1 ms
        a step on the device          5.04 ms  499 steps in 2.5 s · 197 steps/s · 6310 samples/s
        VERDICT  the device does not wait: it computed 99.4 % of the time
        ");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn the_verdict_says_who_is_late() {
        insta::assert_snapshot!(metrics(0.6, 0.4, 0.39).verdict(), @"the device stood still for 40.0 % of the time, and the loop waited for batches: highly input-bound");
        insta::assert_snapshot!(metrics(0.9, 0.1, 0.09).verdict(), @"the device stood still for 10.0 % of the time, and the loop waited for batches: moderately input-bound");
        insta::assert_snapshot!(metrics(0.6, 0.4, 0.01).verdict(), @"the device stood still for 40.0 % of the time, but next() took only 1.0 %: the batches are not late, the loop's work between them takes the time");
        insta::assert_snapshot!(metrics(0.97, 0.03, 0.9).verdict(), @"the loop waits for batches, but far enough ahead: the device computed 97.0 % of the time");
        insta::assert_snapshot!(metrics(0.99, 0.01, 0.01).verdict(), @"the device does not wait: it computed 99.0 % of the time");
    }
}
