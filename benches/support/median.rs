//! Duration of work, as the median of a few rounds after a warm-up.

use std::time::Duration;

/// Returns the seconds of `work` by `clock`, which may count from any start.
pub(crate) fn seconds(rounds: usize, clock: impl Fn() -> Duration, mut work: impl FnMut()) -> f64 {
    work();
    let mut round = || {
        let start = clock();
        work();
        clock() - start
    };
    let mut times: Vec<Duration> = (0..rounds).map(|_| round()).collect();
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
