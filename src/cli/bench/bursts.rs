//! Bursts: many batches arrive at once if a stage fills a window or a buffer before its first output.
//!
//! A rate over a part of a burst is meaningless: the fifty batches of a window take no time, and the next batch takes a whole window.
//! A run therefore continues until it covers whole periods. It has no rate if the pipeline ends earlier.

use std::time::Duration;

use crate::consumer::Step;

/// Shortest wait that can mark a burst: the scheduler occasionally delays any call by this much.
const SHORT: Duration = Duration::from_millis(1);
/// A run is steady if it lasts this many times its longest wait.
const STEADY: u32 = 8;
/// Upper bound on the run time that a slow first batch requires: a slow start-up is not a window.
const FIRST: Duration = Duration::from_secs(1);
/// Shortest run of a pipeline that does not end: a few milliseconds are subject to chance.
const LEAST: Duration = Duration::from_millis(500);
/// Maximum length of a run.
const LONGEST: Duration = Duration::from_secs(60);

/// Arrival pattern of the batches of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Batches arrive evenly.
    Steady,
    /// Batches arrive in bursts. The range `from..to` begins at the first long wait, ends at the last, and covers `periods` periods.
    Bursts { from: usize, to: usize, periods: usize },
    /// The run is too short to classify.
    Unknown,
}

/// Returns the kind of a run. Its measured steps begin at index `begun`, and its first batch arrived after `first_batch_s` seconds.
pub(super) fn kind(steps: &[Step], begun: usize, first_batch_s: f64) -> Kind {
    let Some((before, measured @ [_, ..])) = steps.split_at_checked(begun) else { return Kind::Unknown };
    let longest = |steps: &[Step]| steps.iter().map(Step::load).max().unwrap_or_default();
    // The first batch includes the start-up of the loader.
    let first = if begun > 0 { Duration::from_secs_f64(first_batch_s) } else { Duration::ZERO };
    let (before, longest) = (longest(before).max(first), longest(measured));
    if longest < SHORT && before < SHORT {
        return Kind::Steady;
    }
    let took = took(measured);
    if took < before.min(FIRST) {
        return Kind::Unknown;
    }
    if took >= STEADY * longest {
        return Kind::Steady;
    }
    let mut long = measured.iter().enumerate().filter(|(_, step)| step.load() >= longest / 2).map(|(at, _)| at);
    let from = long.next().unwrap_or_default();
    let (periods, to) = long.fold((0, from), |(periods, _), at| (periods + 1, at));
    if periods >= 2 { Kind::Bursts { from, to, periods } } else { Kind::Unknown }
}

/// Returns true if a run may end: it has lasted `LEAST` and its kind is known, or it has lasted longer than `LONGEST`.
pub(super) fn is_over(steps: &[Step], begun: usize, first_batch_s: f64) -> bool {
    let took = took(&steps[begun..]);
    took > LONGEST || took >= LEAST && kind(steps, begun, first_batch_s) != Kind::Unknown
}

fn took(steps: &[Step]) -> Duration {
    let ends = steps.first().zip(steps.last());
    ends.map_or(Duration::ZERO, |(first, last)| last.got.saturating_sub(first.asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Makes a warm-up step and `count` measured steps: every `each`th takes `wait`, the others 20 us.
    fn steps(count: u32, each: u32, wait: Duration) -> Vec<Step> {
        let mut now = Duration::ZERO;
        let mut step = |wait: Duration| {
            let (asked, got) = (now, now + wait);
            now = got;
            Step { asked, got, ready: got, done: got, samples: 1 }
        };
        let waits = (0..count).map(|at| if at % each == each - 1 { wait } else { MS / 50 });
        std::iter::once(Duration::ZERO).chain(waits).map(&mut step).collect()
    }

    fn kind_of(count: u32, each: u32, wait: Duration, before: Duration) -> Kind {
        kind(&steps(count, each, wait), 1, before.as_secs_f64())
    }

    #[test]
    fn a_window_of_fifty_batches_has_a_rate_once_two_windows_were_seen() {
        let window = 300 * MS;
        for count in [5, 20, 49, 50, 60, 149] {
            assert_eq!(kind_of(count, 50, window, 350 * MS), Kind::Unknown, "{count}");
        }
        assert_eq!(kind_of(150, 50, window, 350 * MS), Kind::Bursts { from: 49, to: 149, periods: 2 });
        let measured = &steps(150, 50, window)[1..];
        let rate = 100.0 / (measured[149].asked - measured[49].asked).as_secs_f64();
        assert!((rate / (50.0 / 0.300_98) - 1.0).abs() < 1e-3, "{rate}");
        // A wait of an eighth of the run is short enough.
        assert_eq!(kind_of(50 * 8, 50, window, 350 * MS), Kind::Steady);
    }

    #[test]
    fn a_run_lasts_half_a_second_however_few_steps_are_asked_for() {
        let is_over_at = |count| is_over(&steps(count, 1, 10 * MS), 1, 0.01);
        assert!(!is_over_at(5) && !is_over_at(49) && is_over_at(50));
    }

    #[test]
    fn batches_that_come_evenly_need_as_long_as_the_first() {
        assert_eq!(kind_of(20, 1, 10 * MS, 100 * MS), Kind::Steady);
        assert_eq!(kind_of(20, 1, 10 * MS, 300 * MS), Kind::Unknown);
        assert_eq!(kind_of(31, 1, 10 * MS, 300 * MS), Kind::Steady);
        // A start-up of a minute requires a run of a second only.
        assert_eq!(kind_of(99, 1, 10 * MS, 60_000 * MS), Kind::Unknown);
        assert_eq!(kind_of(100, 1, 10 * MS, 60_000 * MS), Kind::Steady);
        assert_eq!(kind_of(5, 1, 10 * MS, 20 * MS), Kind::Bursts { from: 0, to: 4, periods: 4 });
        assert_eq!(kind_of(3, 50, MS, MS / 2), Kind::Steady, "shorter than anything that can be told");
        assert_eq!(kind(&[], 0, 0.0), Kind::Unknown);
    }
}
