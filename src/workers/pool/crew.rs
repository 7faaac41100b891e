//! The workers there are, what each is at, and when the next may be started.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::job::Job;
use crate::workers::pool::carrier::Carrier;

/// A worker, from before it connects until it is reaped.
pub(super) struct Member<C: Carrier> {
    /// The cap of its private memory.
    pub(super) cap: u64,
    /// Its number among the workers; one that takes the place of another has its number.
    pub(super) place: usize,
    /// The way to it; `None` until it is there.
    pub(super) link: Option<C::Link>,
    /// Whether its pipeline is built.
    pub(super) ready: bool,
    /// The tasks that it is at.
    pub(super) tasks: BTreeMap<u64, Running<C>>,
    /// Tasks that others were asked, too, because it was late with them.
    pub(super) stale: BTreeMap<u64, Stale<C>>,
    /// Extents that it keeps: it may write there for as long as it lives.
    pub(super) kept: Vec<C::Room>,
    /// The reason for which we killed it, if we did.
    pub(super) killed: Option<String>,
    /// Whether it is to end, because fewer are wanted, as soon as it has nothing more to do.
    pub(super) leaving: bool,
    /// Whether it was told so.
    pub(super) told_to_stop: bool,
    /// Tasks that it has done.
    pub(super) done: u64,
    /// Time at which its memory was last looked at.
    pub(super) looked: Option<Instant>,
    /// Time at which its start began.
    pub(super) begun: Instant,
}

/// A task that a worker has.
pub(super) struct Running<C: Carrier> {
    pub(super) job: Job,
    pub(super) asked: u64,
    pub(super) room: C::Room,
    pub(super) since: Instant,
}

/// A task whose job went on to others.
pub(super) struct Stale<C: Carrier> {
    /// The place of its job, and where that was.
    pub(super) seq: u64,
    pub(super) start: u64,
    pub(super) asked: u64,
    pub(super) room: C::Room,
    pub(super) since: Instant,
}

impl<C: Carrier> Member<C> {
    pub(super) fn new(cap: u64) -> Self {
        let (link, killed, looked, tasks) = (None, None, None, BTreeMap::new());
        let (ready, leaving, told_to_stop, done) = (false, false, false, 0);
        let (begun, kept, stale) = (Instant::now(), Vec::new(), BTreeMap::new());
        Self { cap, place: 0, link, ready, tasks, stale, kept, killed, leaving, told_to_stop, done, looked, begun }
    }

    /// When each of its tasks was sent, those that others were asked, too, among them.
    pub(super) fn since(&self) -> impl Iterator<Item = Instant> + '_ {
        let stale = self.stale.values().map(|task| task.since);
        self.tasks.values().map(|task| task.since).chain(stale)
    }

    /// Whether it has not delivered anything yet: it starts, makes its pipeline, and opens and loads for its first task what
    /// it needs for all. One that has nothing to do does not begin, nor does one whose first task takes very long.
    pub(super) fn begins(&self, now: Instant) -> bool {
        let time = now.saturating_duration_since(self.begun);
        !self.ready || (self.done == 0 && !self.tasks.is_empty() && time < LONG_FIRST)
    }

    /// Whether it can have one more task; a suspect one only by itself, and with a cap of `least`.
    pub(super) fn has_place(&self, threads: usize, suspect: bool, least: u64) -> bool {
        let alone = suspect || self.tasks.values().any(|task| task.job.is_suspect());
        // One more than there are threads, so that none waits for the next while an answer is on its way.
        self.ready
            && self.killed.is_none()
            && !self.leaving
            && self.cap >= least
            && if alone { self.tasks.is_empty() } else { self.tasks.len() + self.stale.len() <= threads }
    }
}

/// A first task that takes longer is no longer a beginning.
const LONG_FIRST: Duration = Duration::from_secs(20);

/// A rule for when a worker may be started again after one has died, and when there is no hope.
#[derive(Debug, Default)]
pub(super) struct Respawn {
    /// Deaths of their own doing since something was last delivered, and the first of those.
    own: u32,
    own_since: Option<Instant>,
    /// Deaths by somebody else's signal since then, and the first of those.
    killed: u32,
    killed_since: Option<Instant>,
    not_before: Option<Instant>,
    /// The longest that a worker has taken to be ready.
    start: Duration,
}

/// Deaths of their own doing that end the run, for each worker that there is to be, with nothing delivered between them.
const HOPELESS: u32 = 10;
/// Deaths that are further apart say nothing of each other; and for so long, at least, workers may be killed from outside.
const PATIENCE: Duration = Duration::from_secs(60);
/// Factor of the time that a worker takes to start, where that is longer.
const STARTS: u32 = 20;

impl Respawn {
    /// Something was delivered.
    pub(super) fn progress(&mut self) {
        *self = Self { start: self.start, ..Self::default() };
    }

    /// A worker was ready so long after it was begun.
    pub(super) fn started(&mut self, time: Duration) {
        self.start = self.start.max(time);
    }

    /// One of so many `workers` died, `killed` by somebody else or by what it did; returns whether there is no hope.
    ///
    /// A worker that dies of what it does will do so again, so a number of deaths ends the run. Whoever kills workers may
    /// stop at any time, so only time does.
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
        // The first time at once; a program that dies at its start must not be started in a tight loop.
        let delay = match round {
            0 | 1 => Duration::ZERO,
            2..=4 => Duration::from_millis(100),
            _ => Duration::from_secs(1),
        };
        self.not_before = Some(now + delay);
        hopeless
    }

    /// Returns when the next may be started.
    pub(super) fn due(&self, now: Instant) -> Instant {
        self.not_before.unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::processes::Processes;

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
    fn a_worker_begins_until_it_has_delivered() {
        let mut member = Member::<Processes>::new(1);
        let now = member.begun;
        assert!(member.begins(now), "it is not ready");
        member.ready = true;
        assert!(!member.begins(now), "it has nothing to do");
        member.done = 1;
        assert!(!member.begins(now));
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
        // One that takes long to start is given more time.
        respawn.progress();
        respawn.started(6000 * MS);
        assert!(kills(&mut respawn).unwrap() * 270 > 120_000);
        // Few that are far apart are no storm.
        respawn.progress();
        assert!(!(0..10).any(|n| respawn.died(start + n * Duration::from_secs(600), true, 1)));
    }
}
