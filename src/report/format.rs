//! Formats of numbers and times for people.

use crate::units::Bytes;

/// Formats a number with three digits and a unit: `4.33 M`.
pub(crate) fn count(n: f64) -> String {
    let (value, unit) = match n {
        n if n >= 1e12 => (n / 1e12, " T"),
        n if n >= 1e9 => (n / 1e9, " G"),
        n if n >= 1e6 => (n / 1e6, " M"),
        n if n >= 1e4 => (n / 1e3, " k"),
        n => (n, ""),
    };
    let decimals = match value {
        value if value >= 100.0 || (unit.is_empty() && value.fract() == 0.0) => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}{unit}")
}

/// Formats bytes with three digits and a unit of powers of two: `13.7 MiB`.
pub(crate) fn bytes(n: f64) -> String {
    Bytes(n.round() as u64).to_string()
}

/// Formats a share as a percentage: `0.993` as `99.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a time given in microseconds.
pub(crate) fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.2} s", us / 1e6),
        us if us >= 1e3 => format!("{:.2} ms", us / 1e3),
        us if us >= 1.0 => format!("{us:.1} µs"),
        us => format!("{:.0} ns", us * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(
            [count(7.0), count(1234.0), count(0.5), count(43_210.0), count(4.33e6)],
            ["7", "1234", "0.50", "43.2 k", "4.33 M"]
        );
        assert_eq!(
            [bytes(0.0), bytes(2336.0), bytes(13.7e6), bytes(123e9)],
            ["0 B", "2.28 KiB", "13.1 MiB", "115 GiB"]
        );
        assert_eq!([time(0.12), time(41.0), time(1200.0), time(2.5e6)], ["120 ns", "41.0 µs", "1.20 ms", "2.50 s"]);
    }
}
