//! The time of a training step, as an argument.

use std::time::Duration;

/// A time of zero to a day: `5ms`, `0.3s`, `800us`; a number alone is milliseconds.
pub(crate) fn step_time(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "" | "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "s" => 1.0,
        _ => return Err("the units are us, ms and s".to_owned()),
    };
    let time = number.trim().parse::<f64>().ok().map(|number| number * seconds);
    let time = time.filter(|time| (0.0..=86_400.0).contains(time));
    time.map(Duration::from_secs_f64).ok_or_else(|| "a time such as 5ms is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let us = Duration::from_micros;
        let times = ["5", "5ms", "0.3s", "800us", "1.5 µs", "0"].map(|text| step_time(text).unwrap());
        assert_eq!(times, [us(5000), us(5000), us(300_000), us(800), Duration::from_nanos(1500), us(0)]);
        for bad in ["", "x", "ms", "5min", "-1", "1e9s", "nan", "inf"] {
            assert!(step_time(bad).is_err(), "{bad}");
        }
    }
}
