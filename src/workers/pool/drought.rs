//! Periods in which views hold all shared memory, and no task in progress could free any.

use std::time::{Duration, Instant};

use crate::exec::Demand;

/// Time that a waiting consumer goes without elements for its own memory. Views that it dropped may still await garbage
/// collection by Python or JAX, which takes less than this time.
const PATIENCE: Duration = Duration::from_millis(50);

/// Time without elements if the consumer is busy elsewhere. The consumer may never ask again, but others may wait for
/// its pipeline.
const LONG_PATIENCE: Duration = Duration::from_secs(1);

/// Interval between checks whether the consumer has begun to wait.
const LOOK: Duration = Duration::from_millis(5);

/// Decides how long to wait for views to be dropped before an element is copied out.
///
/// A consumer that keeps all its views would wait in vain each time, so such waits are limited to a twentieth of the
/// run.
#[derive(Debug)]
pub(super) struct Drought {
    start: Instant,
    since: Option<Instant>,
    in_vain: Duration,
}

impl Drought {
    pub(super) fn new(now: Instant) -> Self {
        Self { start: now, since: None, in_vain: Duration::ZERO }
    }

    /// Ends the drought: memory is or will be available.
    pub(super) fn over(&mut self, demand: &Demand) {
        if self.since.take().is_some() {
            demand.set_short(false);
        }
    }

    /// Continues the drought. Returns the time to wait, or `None` if the drought has lasted long enough.
    pub(super) fn goes_on(&mut self, now: Instant, demand: &Demand) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(|| {
            demand.set_short(true);
            now
        });
        let dry = now.saturating_duration_since(since);
        let (waited, patience) = match demand.waiting(now) {
            Some(waiting) => (waiting.min(dry), self.patience(now)),
            None => (dry, LONG_PATIENCE),
        };
        if waited < patience {
            return Some(LOOK.min(patience - waited));
        }
        self.in_vain += waited.min(PATIENCE);
        self.over(demand);
        None
    }

    fn patience(&self, now: Instant) -> Duration {
        let allowed = PATIENCE + now.saturating_duration_since(self.start) / 20;
        PATIENCE.min(allowed.saturating_sub(self.in_vain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Returns the length of each of `count` droughts for a consumer that waits and frees nothing.
    fn droughts(count: usize, apart: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let (mut drought, demand, mut now) = (Drought::new(start), Demand::default(), start + ms(10));
        let mut lasted = Vec::new();
        for _ in 0..count {
            demand.begin(now);
            let begun = now;
            while let Some(wait) = drought.goes_on(now, &demand) {
                assert!(demand.is_short() && wait > Duration::ZERO && wait <= LOOK);
                now += wait;
            }
            assert!(!demand.is_short());
            lasted.push(now - begun);
            now += apart;
            demand.end(now);
        }
        lasted
    }

    #[test]
    fn a_consumer_waits_a_moment_for_its_own_memory() {
        assert_eq!(droughts(1, ms(0)), [ms(50)]);
        assert_eq!(droughts(3, ms(2000)), [ms(50); 3]);
    }

    #[test]
    fn one_that_keeps_everything_waits_a_twentieth_of_the_time_at_most() {
        let lasted = droughts(1000, ms(1));
        let (all, total) = (lasted.iter().sum::<Duration>(), lasted.iter().map(|&one| one + ms(1)).sum::<Duration>());
        assert!(all <= PATIENCE + total / 20 + ms(1), "{all:?} of {total:?}");
    }

    #[test]
    fn one_that_is_busy_is_not_copied_for() {
        let start = Instant::now();
        let (mut drought, demand) = (Drought::new(start), Demand::default());
        demand.begin(start);
        demand.end(start + ms(1));
        for at in 2..900 {
            assert_eq!(drought.goes_on(start + ms(at), &demand), Some(LOOK));
        }
        // The consumer asks again, and then has 50 ms.
        demand.begin(start + ms(900));
        assert_eq!(drought.goes_on(start + ms(949), &demand), Some(ms(1)));
        assert_eq!(drought.goes_on(start + ms(950), &demand), None);
        demand.end(start + ms(951));
        assert!(drought.goes_on(start + ms(952), &demand).is_some());
        assert_eq!(drought.goes_on(start + ms(1952), &demand), None, "it never asks again");
    }

    #[test]
    fn memory_that_comes_back_ends_it() {
        let start = Instant::now();
        let (mut drought, demand) = (Drought::new(start), Demand::default());
        demand.begin(start);
        for at in [0, 100, 200] {
            assert!(drought.goes_on(start + ms(at), &demand).is_some());
            assert!(drought.goes_on(start + ms(at + 40), &demand).is_some());
            drought.over(&demand);
            assert!(!demand.is_short());
        }
    }
}
