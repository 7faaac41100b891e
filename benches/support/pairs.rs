//! Paired measurements.

use gristmill::Result;

pub(crate) fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Measures both in direct succession, `rounds` times. They alternate in going first.
pub(crate) fn pairs(
    rounds: usize,
    mut limit: impl FnMut() -> Result<f64>,
    mut ours: impl FnMut() -> Result<f64>,
) -> Result<Vec<(f64, f64)>> {
    let pair = |round: usize| {
        if round.is_multiple_of(2) {
            Ok((limit()?, ours()?))
        } else {
            let ours = ours()?;
            Ok((limit()?, ours))
        }
    };
    (0..rounds).map(pair).collect()
}

/// Returns the quartiles of the limit's figure in per cent of ours, computed per pair because the machine's speed
/// changes between pairs.
pub(crate) fn shares(pairs: &[(f64, f64)]) -> [f64; 3] {
    let mut shares: Vec<f64> = pairs.iter().map(|(limit, ours)| 100.0 * limit / ours).collect();
    shares.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| shares[quarter * (shares.len() - 1) / 4])
}
