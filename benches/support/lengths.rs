//! Sequence lengths like those of real text.

/// Returns `count` log-normal lengths from 1 to `most`, with mean `mean`; `sigma` is the deviation of the logarithm.
/// Always returns equal lengths for equal arguments.
pub(crate) fn log_normal(count: usize, mean: f64, sigma: f64, most: usize) -> Vec<usize> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut uniform = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mu = mean.ln() - sigma * sigma / 2.0;
    let mut length = || {
        let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * uniform()).cos();
        ((mu + sigma * normal).exp() as usize).clamp(1, most)
    };
    (0..count).map(|_| length()).collect()
}
