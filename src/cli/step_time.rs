//! Argument for the time of a training step.

use std::time::Duration;

/// What a consumer takes for a batch.
#[derive(clap::Args)]
pub(crate) struct StepTime {
    /// Time of a training step, such as 5ms, 0.3s or 800us [default: none]
    ///
    /// The consumer sleeps for this time after each batch. On a device of `bench --consumer pjrt:PATH` it begins after the transfer of the batch;
    /// without it, the transfer is the step.
    #[arg(long, value_name = "TIME", value_parser = step_time)]
    step_time: Option<Duration>,
    /// Time of a training step in milliseconds
    #[arg(long, value_name = "MS", hide = true, conflicts_with = "step_time", value_parser = milliseconds)]
    step_ms: Option<Duration>,
}

impl StepTime {
    /// Returns the time, if it was given.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.step_time.or(self.step_ms)
    }
}

/// Parses a time of zero to a day: `5ms`, `0.3s`, `800us`.
fn step_time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    match unit {
        "ms" => time(number, 1e-3),
        "us" | "µs" => time(number, 1e-6),
        "s" => time(number, 1.0),
        "" if time(number, 1.0).is_ok_and(|time| time.is_zero()) => Ok(Duration::ZERO),
        "" => Err(format!("it needs a unit, such as {}ms", text.trim())),
        _ => Err("the units are us, ms and s".to_owned()),
    }
}

/// Parses a number of milliseconds.
fn milliseconds(text: &str) -> Result<Duration, String> {
    time(text, 1e-3)
}

fn time(number: &str, unit: f64) -> Result<Duration, String> {
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit);
    let seconds = seconds.filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a time such as 5ms is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let us = Duration::from_micros;
        let times = ["5ms", "0.3s", "800us", "1.5 µs", "0", "0ms"].map(|text| step_time(text).unwrap());
        assert_eq!(times, [us(5000), us(300_000), us(800), Duration::from_nanos(1500), us(0), us(0)]);
        for bad in ["", "x", "ms", "5min", "-1s", "1e9s", "nans", "inf", "5"] {
            assert!(step_time(bad).is_err(), "{bad}");
        }
        assert_eq!(step_time("5").unwrap_err(), "it needs a unit, such as 5ms");
        assert_eq!(milliseconds("5").unwrap(), us(5000));
        assert!(milliseconds("5ms").is_err());
    }
}
