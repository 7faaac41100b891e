//! Bursts: batches that come many at a time, because a stage fills a window or a buffer before it hands over the first.
//!
//! A rate over a part of a burst can be any number: fifty batches out of a window take no time, and the next one takes as long as a window. So
//! a run goes on until it has seen whole periods, and has no rate if the pipeline ends before.

use std::time::Duration;

/// Waits that are shorter are no sign of bursts: so long does any call take now and then.
const SHORT: Duration = Duration::from_millis(1);
/// A run is steady if it takes so many times as long as its longest wait.
const STEADY: u32 = 8;
/// A run takes at least as long as the first batch did, in which a window was filled, or this long, if start-up took longer than that.
const FIRST: Duration = Duration::from_secs(1);
/// A run goes on for this long at most.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// A batch of a run: when it was asked for, and how long that took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) asked: Duration,
    pub(super) wait: Duration,
}

/// The kind of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Its batches come evenly.
    Steady,
    /// Its batches come in bursts: the steps from the first long wait to the last, which are so many periods.
    Bursts { from: usize, to: usize, periods: usize },
    /// It is too short for either.
    Unknown,
}

/// Finds the kind of a run of these `steps`, which took until `end`; no batch `before` them was waited for longer than that.
pub(super) fn kind(steps: &[Step], end: Duration, before: Duration) -> Kind {
    let Some(first) = steps.first() else { return Kind::Unknown };
    let took = end.saturating_sub(first.asked);
    let longest = steps.iter().map(|step| step.wait).max().unwrap_or_default();
    if longest < SHORT && before < SHORT {
        return Kind::Steady;
    }
    if took < before.min(FIRST) {
        return Kind::Unknown;
    }
    if took >= STEADY * longest {
        return Kind::Steady;
    }
    let mut long = steps.iter().enumerate().filter(|(_, step)| step.wait >= longest / 2).map(|(at, _)| at);
    let from = long.next().unwrap_or_default();
    let (periods, to) = long.fold((0, from), |(periods, _), at| (periods + 1, at));
    if periods >= 2 { Kind::Bursts { from, to, periods } } else { Kind::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Steps of a pipeline that takes `wait` for every `each`th batch, and 20 us for others; and their end.
    fn steps(count: u32, each: u32, wait: Duration) -> (Vec<Step>, Duration) {
        let mut now = Duration::ZERO;
        let mut step = |at: u32| {
            let wait = if at % each == each - 1 { wait } else { MS / 50 };
            let step = Step { asked: now, wait };
            now += wait;
            step
        };
        let steps = (0..count).map(&mut step).collect();
        (steps, now)
    }

    fn kind_of(count: u32, each: u32, wait: Duration, before: Duration) -> Kind {
        let (steps, end) = steps(count, each, wait);
        kind(&steps, end, before)
    }

    #[test]
    fn a_window_of_fifty_batches_has_a_rate_once_two_windows_were_seen() {
        let window = 300 * MS;
        for count in [5, 20, 49, 50, 60, 149] {
            assert_eq!(kind_of(count, 50, window, 350 * MS), Kind::Unknown, "{count}");
        }
        assert_eq!(kind_of(150, 50, window, 350 * MS), Kind::Bursts { from: 49, to: 149, periods: 2 });
        let (steps, _) = steps(150, 50, window);
        let rate = 100.0 / (steps[149].asked - steps[49].asked).as_secs_f64();
        assert!((rate / (50.0 / 0.300_98) - 1.0).abs() < 1e-3, "{rate}");
        // A wait that is an eighth of the run is one of many.
        assert_eq!(kind_of(50 * 8, 50, window, 350 * MS), Kind::Steady);
    }

    #[test]
    fn batches_that_come_evenly_need_as_long_as_the_first() {
        assert_eq!(kind_of(20, 1, 10 * MS, 100 * MS), Kind::Steady);
        assert_eq!(kind_of(20, 1, 10 * MS, 300 * MS), Kind::Unknown);
        assert_eq!(kind_of(31, 1, 10 * MS, 300 * MS), Kind::Steady);
        // A start of a minute is none of windows.
        assert_eq!(kind_of(99, 1, 10 * MS, 60_000 * MS), Kind::Unknown);
        assert_eq!(kind_of(100, 1, 10 * MS, 60_000 * MS), Kind::Steady);
        assert_eq!(kind_of(5, 1, 10 * MS, 20 * MS), Kind::Bursts { from: 0, to: 4, periods: 4 });
        assert_eq!(kind_of(3, 50, MS, MS / 2), Kind::Steady, "shorter than anything that can be told");
        assert_eq!(kind(&[], Duration::ZERO, Duration::ZERO), Kind::Unknown);
    }
}
