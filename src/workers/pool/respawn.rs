//! Delays of restarts after deaths of workers.

use std::time::{Duration, Instant};

/// Delay before the next start after deaths, and the limit at which the run ends.
#[derive(Debug, Default)]
pub(super) struct Respawn {
    /// Deaths caused by worker code since the last delivery, and the time of the first.
    own: u32,
    own_since: Option<Instant>,
    /// Deaths by external signals since the last delivery, and the time of the first.
    killed: u32,
    killed_since: Option<Instant>,
    not_before: Option<Instant>,
    /// Longest time from start to ready.
    start: Duration,
}

/// Deaths per worker, caused by its code and without a delivery between them, that end the run.
const HOPELESS: u32 = 10;
/// Time after which deaths count as unrelated, and minimum time for which external kills are tolerated.
const PATIENCE: Duration = Duration::from_secs(60);
/// Factor on the start time of a worker, used instead of [`PATIENCE`] if longer.
const STARTS: u32 = 20;

impl Respawn {
    /// Resets the counts after a delivery.
    pub(super) fn progress(&mut self) {
        *self = Self { start: self.start, ..Self::default() };
    }

    /// Records the time from a worker's start until it was ready.
    pub(super) fn started(&mut self, time: Duration) {
        self.start = self.start.max(time);
    }

    /// Records a death among `workers` workers; `killed` if by an external signal. Returns true if the run should end.
    ///
    /// A worker that dies because of its code will die again, so a number of deaths ends the run. External kills may
    /// stop at any time, so the run also continues for a minimum time.
    pub(super) fn died(&mut self, now: Instant, killed: bool, workers: usize) -> bool {
        let patience = PATIENCE.max(STARTS * self.start);
        let each = u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
        let (round, hopeless) = if killed {
            let since = *self.killed_since.get_or_insert(now);
            self.killed += 1;
            (self.killed.div_ceil(each).min(2), now - since > patience && self.killed > HOPELESS)
        } else {
            if self.own_since.is_none_or(|since| now - since > patience) {
                (self.own_since, self.own) = (Some(now), 0);
            }
            self.own += 1;
            (self.own.div_ceil(each), self.own > HOPELESS.saturating_mul(each))
        };
        // The first restart is immediate; a program that dies at its start must not restart in a tight loop.
        let delay = match round {
            0 | 1 => Duration::ZERO,
            2..=4 => Duration::from_millis(100),
            _ => Duration::from_secs(1),
        };
        self.not_before = Some(now + delay);
        hopeless
    }

    /// Returns the earliest time for the next start.
    pub(super) fn due(&self, now: Instant) -> Instant {
        self.not_before.unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn deaths_of_their_own_doing_slow_down_and_end() {
        let (mut respawn, start) = (Respawn::default(), Instant::now());
        assert_eq!(respawn.due(start), start);
        for n in 1..=10u32 {
            assert!(!respawn.died(start, false, 1));
            let delay = respawn.due(start) - start;
            assert_eq!(delay.as_millis(), [0, 0, 100, 100, 100, 1000][n.min(5) as usize]);
        }
        assert!(respawn.died(start, false, 1));
        respawn.progress();
        assert!(!respawn.died(start, false, 1));
        assert!(!(0..50).any(|n| respawn.died(start + n * Duration::from_secs(61), false, 1)));
    }

    #[test]
    fn many_workers_may_die_at_once() {
        let (mut respawn, start) = (Respawn::default(), Instant::now());
        assert!(!(0..16).any(|_| respawn.died(start, false, 16)));
        assert_eq!(respawn.due(start), start, "each of them once");
        assert_eq!((16..1000).find(|_| respawn.died(start, false, 16)), Some(160));
    }

    #[test]
    fn kills_from_outside_end_a_run_only_after_long() {
        let (mut respawn, start) = (Respawn::default(), Instant::now());
        let kills = |respawn: &mut Respawn| (0..2000).find(|n| respawn.died(start + *n * 270 * MS, true, 1));
        let ended = kills(&mut respawn).unwrap();
        assert!(ended * 270 > 60_000, "after {ended} kills");
        assert!(respawn.due(start + ended * 270 * MS) <= start + (ended * 270 + 100) * MS, "the next is soon there");
        // A worker with a slow start is given more time.
        respawn.progress();
        respawn.started(6000 * MS);
        assert!(kills(&mut respawn).unwrap() * 270 > 120_000);
        // A few deaths far apart do not end the run.
        respawn.progress();
        assert!(!(0..10).any(|n| respawn.died(start + n * Duration::from_secs(600), true, 1)));
    }
}
