//! The workers there are, what each is at, and when the next may be started.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::job::Job;
use crate::workers::launch::Worker;
use crate::workers::slab::Grant;

/// A worker, from before it connects until it is reaped.
pub(super) struct Member {
    /// The cap of its private memory.
    pub(super) cap: u64,
    /// Which of so many workers it is; one that takes the place of another has its number.
    pub(super) place: u64,
    /// `None` until it has connected.
    pub(super) worker: Option<Worker>,
    /// Whether its pipeline is built.
    pub(super) ready: bool,
    /// What it is at, by task.
    pub(super) tasks: BTreeMap<u64, Running>,
    /// Why it was killed by us, if it was.
    pub(super) killed: Option<String>,
    /// Whether it is to end, because fewer are wanted, as soon as it has nothing more to do.
    pub(super) leaving: bool,
    /// Whether it was told so.
    pub(super) told_to_stop: bool,
    /// Tasks that it has done.
    pub(super) done: u64,
    /// When its memory was last looked at.
    pub(super) looked: Option<Instant>,
}

/// A task that a worker has.
pub(super) struct Running {
    pub(super) job: Job,
    pub(super) asked: u64,
    pub(super) grant: Grant,
    pub(super) since: Instant,
}

impl Member {
    pub(super) fn new(cap: u64) -> Self {
        let (worker, killed, looked, tasks) = (None, None, None, BTreeMap::new());
        let (ready, leaving, told_to_stop, done) = (false, false, false, 0);
        Self { cap, place: 0, worker, ready, tasks, killed, leaving, told_to_stop, done, looked }
    }

    /// Whether it can have one more task; a suspect one only by itself, and with a cap of `least`.
    pub(super) fn has_place(&self, threads: usize, suspect: bool, least: u64) -> bool {
        let alone = suspect || self.tasks.values().any(|task| task.job.is_suspect());
        // One more than there are threads, so that none waits for the next while an answer is on its way.
        self.ready
            && self.killed.is_none()
            && !self.leaving
            && self.cap >= least
            && if alone { self.tasks.is_empty() } else { self.tasks.len() <= threads }
    }
}

/// When a worker may be started again after one has died.
#[derive(Debug, Default)]
pub(super) struct Respawn {
    /// Deaths since something was last delivered.
    deaths: u32,
    first: Option<Instant>,
    not_before: Option<Instant>,
}

/// So many deaths within [`PATIENCE`], with nothing delivered between them, end the run.
const HOPELESS: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(60);

impl Respawn {
    /// Something was delivered.
    pub(super) fn progress(&mut self) {
        *self = Self::default();
    }

    /// A worker died; returns whether there is no hope.
    pub(super) fn died(&mut self, now: Instant) -> bool {
        if self.first.is_none_or(|first| now - first > PATIENCE) {
            (self.first, self.deaths) = (Some(now), 0);
        }
        self.deaths += 1;
        // The first time at once; a program that dies at its start must not be started in a tight loop.
        let delay = match self.deaths {
            1 => Duration::ZERO,
            2..=4 => Duration::from_millis(100),
            _ => Duration::from_secs(1),
        };
        self.not_before = Some(now + delay);
        self.deaths > HOPELESS
    }

    /// When the next may be started.
    pub(super) fn due(&self, now: Instant) -> Instant {
        self.not_before.unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_without_progress_slow_down_and_end() {
        let (mut respawn, start) = (Respawn::default(), Instant::now());
        assert_eq!(respawn.due(start), start);
        for n in 1..=10u32 {
            assert!(!respawn.died(start));
            let delay = respawn.due(start) - start;
            assert_eq!(delay.as_millis(), [0, 0, 100, 100, 100, 1000][n.min(5) as usize]);
        }
        assert!(respawn.died(start));
        respawn.progress();
        assert!(!respawn.died(start));
        assert!(!(0..50).any(|n| respawn.died(start + n * Duration::from_secs(61))));
    }
}
