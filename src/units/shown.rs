//! Amounts that are sufficient or permitted as they are printed.

use super::Bytes;

/// Maximum error of sums of floating-point numbers: far less than a byte.
const NEARLY: f64 = 1e-3;

impl Bytes {
    /// Returns the amount that is printed for `bytes`, or the next larger amount, for messages about sufficient amounts.
    pub(crate) fn at_least(bytes: u64) -> Self {
        let (step, shown) = Self(bytes).shown();
        Self(if shown + NEARLY < bytes as f64 { (shown + step).ceil() as u64 } else { bytes })
    }

    /// Returns the amount that is printed for `bytes`, or the next smaller amount, for messages about permitted amounts.
    pub(crate) fn at_most(bytes: u64) -> Self {
        let (step, shown) = Self(bytes).shown();
        Self(if shown - NEARLY > bytes as f64 { (shown - step).floor() as u64 } else { bytes })
    }

    /// Returns the value of the last digit, and the printed number of bytes.
    fn shown(self) -> (f64, f64) {
        let (power, _, digits) = self.scale();
        let unit = 2f64.powi(power);
        // Parses the printed number, because printing rounds a tie to an even digit.
        let printed: f64 = self.number().parse().unwrap_or(f64::MAX);
        (unit / 10f64.powi(digits), printed * unit)
    }
}
