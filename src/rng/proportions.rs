//! Conversion of the weights of a mix to integers.

use crate::error::{Error, Result};

/// Maximum sum of proportions. Sums of two numbers below the limit fit in 64 bits.
const MAX_SUM: u128 = 1 << 63;

/// Computes `trunc(weight * (100 / smallest))` for each weight, like Grain.
pub(crate) fn like_grain(weights: &[f64]) -> Result<Box<[u64]>> {
    check(weights)?;
    let scale = 100.0 / weights.iter().copied().fold(f64::INFINITY, f64::min);
    let scaled: Vec<u128> = weights.iter().map(|weight| (weight * scale) as u128).collect();
    within_sum(&scaled).ok_or_else(|| {
        let (low, high) = weights.iter().fold((f64::INFINITY, 0f64), |(low, high), &w| (low.min(w), high.max(w)));
        let limit = "in hundredths of the smallest, they sum to more than 2^63";
        Error::config(format!("mix weights {low:e} to {high:e} are too far apart: {limit}"))
            .help("drop the smallest weight, or take exact proportions")
    })
}

/// Returns integers proportional to the simplest fractions with equal `f64`s, or nearly proportional if those are large.
pub(crate) fn exact(weights: &[f64]) -> Result<Box<[u64]>> {
    check(weights)?;
    Ok(common_denominator(weights).unwrap_or_else(|| rounded(weights)))
}

fn check(weights: &[f64]) -> Result<()> {
    if weights.is_empty() {
        return Err(Error::config("a mix needs at least one component"));
    }
    if let Some((component, weight)) = weights.iter().enumerate().find(|(_, w)| !(w.is_finite() && **w > 0.0)) {
        Err(Error::config(format!("mix weight {weight} of component {component} is not a finite number above 0")))
    } else {
        Ok(())
    }
}

fn within_sum(proportions: &[u128]) -> Option<Box<[u64]>> {
    let sum = proportions.iter().try_fold(0u128, |sum, &p| sum.checked_add(p))?;
    (sum <= MAX_SUM).then(|| proportions.iter().map(|&p| p as u64).collect())
}

fn common_denominator(weights: &[f64]) -> Option<Box<[u64]>> {
    let fractions: Vec<(u128, u128)> = weights.iter().map(|&w| simplest_fraction(w)).collect::<Option<_>>()?;
    let common = fractions.iter().try_fold(1u128, |lcm, &(_, d)| (lcm / gcd(lcm, d)).checked_mul(d))?;
    let scaled: Vec<u128> = fractions.iter().map(|&(n, d)| n.checked_mul(common / d)).collect::<Option<_>>()?;
    let divisor = scaled.iter().fold(0, |divisor, &p| gcd(divisor, p));
    let reduced: Vec<u128> = scaled.iter().map(|p| p / divisor).collect();
    within_sum(&reduced)
}

/// Returns the first convergent of the continued fraction of `value` with an equal `f64`, if its terms are exact in `f64`.
fn simplest_fraction(value: f64) -> Option<(u128, u128)> {
    const EXACT: u128 = 1 << 53;
    if value.fract() == 0.0 {
        return (value < MAX_SUM as f64).then_some((value as u128, 1));
    }
    let exponent = (value.to_bits() >> 52) as i32 - 1075;
    if exponent < -110 {
        return None;
    }
    let (mut numerator, mut denominator) = ((value * 2f64.powi(-exponent)) as u128, 1u128 << -exponent);
    let (mut last, mut current) = ((0, 1), (1, 0));
    while denominator > 0 {
        let term = numerator / denominator;
        (numerator, denominator) = (denominator, numerator % denominator);
        let next = |last: u128, current: u128| term.checked_mul(current)?.checked_add(last).filter(|&n| n <= EXACT);
        (last, current) = (current, (next(last.0, current.0)?, next(last.1, current.1)?));
        if current.0 as f64 / current.1 as f64 == value {
            return Some(current);
        }
    }
    None
}

/// Rounds weights to units of a power of two. The largest weight gets 60 bits minus the bits of the component count.
fn rounded(weights: &[f64]) -> Box<[u64]> {
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let spare = (usize::BITS - weights.len().leading_zeros()) as i32;
    let scale = 60 - spare - largest.log2().floor() as i32;
    // Scales in two steps, because 2^scale may be out of range.
    let (half, other) = (2f64.powi(scale / 2), 2f64.powi(scale - scale / 2));
    weights.iter().map(|weight| ((weight * half * other).round() as u64).max(1)).collect()
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn grain(weights: &[f64]) -> Vec<u64> {
        like_grain(weights).unwrap().into_vec()
    }

    // `_float_to_int_proportions` of grain 0.2.18.
    #[test]
    fn weights_are_truncated_as_in_grain() {
        assert_eq!(grain(&[0.29, 0.71]), [100, 244]);
        assert_eq!(grain(&[0.839, 1.391, 1.563]), [100, 165, 186]);
        assert_eq!(grain(&[2.664, 1.961, 1.752]), [152, 111, 100]);
        assert_eq!(grain(&[1e-3, 7.7, 0.07]), [100, 770_000, 7000]);
        assert_eq!(grain(&[0.49, 0.49, 0.02]), [2450, 2450, 100]);
        assert_eq!(grain(&[3.0, 5.0, 11.0]), [100, 166, 366]);
        assert_eq!(grain(&[1e-15, 1.0]), [100, 100_000_000_000_000_000]);
    }

    #[test]
    fn exact_weights_are_those_that_were_written() {
        let exact = |weights: &[f64]| exact(weights).unwrap().into_vec();
        assert_eq!(exact(&[0.29, 0.71]), [29, 71]);
        assert_eq!(exact(&[0.1, 0.2, 0.7]), [1, 2, 7]);
        assert_eq!(exact(&[1.0 / 3.0, 0.5]), [2, 3]);
        assert_eq!(exact(&[6.0, 4.0, 1e6]), [3, 2, 500_000]);
        assert_eq!(exact(&[1e-9, 1.0]), [1, 1_000_000_000]);
        assert_eq!(exact(&[5.5]), [1]);
        assert_eq!(exact(&[1.5e17, 3e16]), [5, 1]);
    }

    #[test]
    fn weights_without_a_small_common_denominator_are_rounded() {
        let weights = [std::f64::consts::PI, std::f64::consts::E, std::f64::consts::SQRT_2, 1e-7, 1e-30];
        let proportions = exact(&weights).unwrap();
        let sum: u64 = proportions.iter().sum();
        assert!(u128::from(sum) <= MAX_SUM);
        let total: f64 = weights.iter().sum();
        for (&proportion, weight) in proportions.iter().zip(weights) {
            let (share, wanted) = (proportion as f64 / sum as f64, weight / total);
            assert!((share - wanted).abs() <= 1e-15, "{weight}: {share} for {wanted}");
        }
        assert_eq!(proportions[4], 1);
    }

    #[test]
    fn any_finite_weights_have_exact_proportions() {
        for weights in
            [&[f64::MIN_POSITIVE, f64::MAX][..], &[5e-324, 5e-324], &[f64::MAX; 3], &[5e-324, 1.0], &[1e300; 100]]
        {
            let proportions = exact(weights).unwrap();
            assert!(proportions.iter().all(|&p| p > 0));
            assert!(proportions.iter().map(|&p| u128::from(p)).sum::<u128>() <= MAX_SUM);
        }
        assert_eq!(*exact(&[5e-324, 1e-323]).unwrap(), [1 << 57, 1 << 58]);
    }

    #[test]
    fn weights_that_are_no_weights_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, -0.0] {
            for result in [like_grain(&[1.0, bad]), exact(&[1.0, bad])] {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Config);
                assert!(error.message().contains("of component 1 is not a finite number above 0"), "{error}");
            }
        }
        assert!(like_grain(&[]).is_err() && exact(&[]).is_err());
        assert_eq!(like_grain(&[1e-18, 1.0]).unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(like_grain(&[5e-324, 1.0]).unwrap_err().kind(), ErrorKind::Config);
    }
}
