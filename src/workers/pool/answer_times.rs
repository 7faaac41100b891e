//! Answer times of tasks, and the time after which a task is late.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of remembered answer times, and the minimum number before the 99th percentile is used.
const REMEMBERED: usize = 256;
const ENOUGH: usize = 20;
/// Minimum time of a late task before [`ENOUGH`] answers arrived; first tasks also open files and warm up.
const EARLY: Duration = Duration::from_secs(5);
/// Minimum time of a late task after that; machines sometimes stall for this long.
const LEAST: Duration = Duration::from_millis(200);

/// Recent answer times of tasks, each from sending to answer.
#[derive(Debug, Default)]
pub(super) struct AnswerTimes(VecDeque<Duration>);

impl AnswerTimes {
    /// Records the answer time of a task.
    pub(super) fn note(&mut self, time: Duration) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(time);
    }

    /// Returns the time after which a task is late: `factor` times the 99th percentile; `None` before the first answer.
    pub(super) fn late(&self, factor: f64) -> Option<Duration> {
        let mut times: Vec<Duration> = self.0.iter().copied().collect();
        if times.len() < ENOUGH {
            // A late task may hold all ranges that may be in progress, and so block everything else.
            return times.iter().max().map(|longest| longest.mul_f64(factor).max(EARLY));
        }
        let at = (times.len() * 99).div_ceil(100) - 1;
        let (_, p99, _) = times.select_nth_unstable(at);
        Some(p99.mul_f64(factor).max(LEAST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_task_is_late_that_takes_much_longer_than_most() {
        let mut times = AnswerTimes::default();
        assert_eq!(times.late(3.0), None);
        for n in 0..ENOUGH as u64 - 1 {
            times.note(Duration::from_millis(n));
        }
        assert_eq!(times.late(3.0), Some(EARLY));
        times.note(Duration::from_secs(2));
        assert_eq!(times.late(3.0), Some(Duration::from_secs(6)));
        (0..REMEMBERED).for_each(|_| times.note(Duration::from_millis(1)));
        assert_eq!(times.late(3.0), Some(LEAST));
    }

    #[test]
    fn the_time_of_a_late_task_follows_from_what_99_of_100_take() {
        // AnswerTimes of tasks in ms, the factor, and the time after which a task is late.
        let ms = |times: &[u32]| times.iter().map(|&time| time * MS).collect::<Vec<_>>();
        let most = |count: usize, rest: &[u32]| ms(&[&vec![100; count][..], rest].concat());
        for (times, factor, late) in [
            (ms(&[]), 3.0, None),
            (ms(&[10]), 3.0, Some(5000)),
            (ms(&[1000, 4000]), 3.0, Some(12_000)),
            // 19 times are too few, 20 are enough.
            (most(19, &[]), 3.0, Some(5000)),
            (most(20, &[]), 3.0, Some(300)),
            (most(20, &[]), 1.5, Some(200)),
            (most(20, &[]), 2.01, Some(201)),
            // One of 100 tasks may take long, two may not.
            (most(99, &[9000]), 3.0, Some(300)),
            (most(98, &[9000, 9000]), 3.0, Some(27_000)),
            // A time is forgotten after 256 later times.
            ([ms(&[9000; 10]), most(246, &[])].concat(), 3.0, Some(27_000)),
            ([ms(&[9000; 10]), most(256, &[])].concat(), 3.0, Some(300)),
        ] {
            let mut all = AnswerTimes::default();
            times.iter().for_each(|&time| all.note(time));
            assert_eq!(all.late(factor), late.map(|late| late * MS), "{times:?}, {factor}");
        }
    }
}
