//! Figures that describe a list of measurements.

use serde::Serialize;

/// Summary of a list of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Stats {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    /// Of the sample, with n − 1; `None` for a single measurement.
    pub(crate) std_dev: Option<f64>,
    /// Coefficient of variation: the standard deviation as a share of the mean.
    pub(crate) cv: Option<f64>,
    pub(crate) min: f64,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Stats {
    /// `None` if nothing was measured.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (count, mean, squares) = moments(&sorted);
        let std_dev = (count > 1).then(|| (squares / (count - 1) as f64).sqrt());
        let cv = std_dev.filter(|_| mean != 0.0).map(|sd| sd / mean);
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|q| quantile(&sorted, q));
        Some(Self { count, mean, std_dev, cv, min, p50, p90, p99, max })
    }
}

/// Count, mean and sum of squared deviations in one pass. Source: B. P. Welford, *Note on a method for calculating
/// corrected sums of squares and products*, Technometrics 4 (1962).
fn moments(samples: &[f64]) -> (usize, f64, f64) {
    let (mut mean, mut squares) = (0.0, 0.0);
    for (i, &x) in samples.iter().enumerate() {
        let from_old = x - mean;
        mean += from_old / (i + 1) as f64;
        squares += from_old * (x - mean);
    }
    (samples.len(), mean, squares)
}

/// Between the two nearest measurements on a straight line, as NumPy's default does. `sorted` is not empty.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_figures() {
        assert_eq!(Stats::of(&[]), None);
        let one = Stats::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.std_dev, one.cv, one.p99, one.max), (3.0, None, None, 3.0, 3.0));
        // numpy: mean 5, std(ddof=1) 2.138…, percentiles 4.5, 7.6 and 8.86
        let s = Stats::of(&[9.0, 2.0, 4.0, 5.0, 4.0, 4.0, 5.0, 7.0]).unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(s.mean, 5.0);
        near(s.std_dev.unwrap(), (32.0f64 / 7.0).sqrt());
        near(s.cv.unwrap(), (32.0f64 / 7.0).sqrt() / 5.0);
        near(s.p50, 4.5);
        near(s.p90, 7.6);
        near(s.p99, 8.86);
        assert_eq!((s.count, s.min, s.max), (8, 2.0, 9.0));
    }

    /// By the definitions, in two passes.
    fn naive(samples: &[f64]) -> (f64, f64) {
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        (mean, (samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0)).sqrt())
    }

    proptest! {
        #[test]
        fn equal_to_the_definitions(samples in prop::collection::vec(0.0f64..1e3, 2..200)) {
            let s = Stats::of(&samples).unwrap();
            let (mean, sd) = naive(&samples);
            prop_assert!((s.mean - mean).abs() < 1e-9 * (1.0 + mean));
            prop_assert!((s.std_dev.unwrap() - sd).abs() < 1e-7 * (1.0 + sd));
            prop_assert!(s.min <= s.p50 && s.p50 <= s.p90 && s.p90 <= s.p99 && s.p99 <= s.max);
            let share = |x: f64| samples.iter().filter(|&&y| y <= x).count() as f64 / samples.len() as f64;
            // At least this share lies at or below the point to the right of the quantile, and not less to its left.
            for (q, x) in [(0.5, s.p50), (0.9, s.p90), (0.99, s.p99)] {
                prop_assert!(share(x) >= q - 1.0 / samples.len() as f64);
                prop_assert!(samples.iter().filter(|&&y| y < x).count() as f64 <= q * samples.len() as f64 + 1.0);
            }
        }
    }
}
