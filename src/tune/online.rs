//! Measures once a second, and asks the controller. At the start of a run it asks more often, if enough elements come to tell:
//! a pipeline that waits has far to go from one thread for each core.

use std::time::{Duration, Instant};

use super::{Bounds, Controller, Decision, Measurement, Setting};

/// Seconds without a single element that are measured as one: elements may take long.
const PATIENCE: u32 = 20;
/// At first it is so often in each second that is measured, for so many seconds, where so many elements have come.
const EARLY: (u32, u32, u64) = (4, 15, 50);
/// Seconds, from the second one on, that tell what came of a decision.
const EFFECT: u32 = 4;
/// Seconds in a row with a pause in each, after which pauses are how this consumer is.
const PAUSES: u32 = 12;

/// Sums since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) busy: Duration,
    /// Part of that for which functions waited for an interpreter's lock.
    pub(crate) locked: Duration,
    /// CPU time of those who evaluate, and of this process with them.
    pub(crate) cpu: Duration,
    pub(crate) taken: Duration,
    pub(crate) indices: u64,
    /// Time for which the stateful part had no elements to work on.
    pub(crate) blocked: Duration,
    pub(crate) waited: Duration,
    /// Elements that the consumer asked for.
    pub(crate) steps: u64,
}

/// See the [module](self).
pub(crate) struct Tuner {
    controller: Controller,
    tick: Duration,
    began: Instant,
    last: Instant,
    before: Totals,
    disturbed: bool,
    /// Whether workers were free and nothing was left to hand out at the last look, when that was, and for how long it was so.
    idle: (bool, Instant, Duration),
    /// The same of there being no memory for what could be handed out.
    short: (bool, Instant, Duration),
    /// Seconds in a row with a pause.
    pauses: u32,
    /// Measurements, elements and seconds since the last decision.
    effect: (u32, f64, f64),
    pub(crate) decisions: Vec<Decision>,
}

impl Tuner {
    pub(crate) fn new(start: Setting, bounds: Bounds, tick: Duration) -> Self {
        Self {
            controller: Controller::new(start, bounds).with_second(tick.as_secs_f64()),
            tick,
            began: Instant::now(),
            last: Instant::now(),
            before: Totals::default(),
            disturbed: true,
            idle: (false, Instant::now(), Duration::ZERO),
            short: (false, Instant::now(), Duration::ZERO),
            pauses: 0,
            effect: (0, 0.0, 0.0),
            decisions: Vec::new(),
        }
    }

    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn setting(&self) -> Setting {
        self.controller.setting()
    }

    /// There is memory for so many workers.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn allow_workers(&mut self, most: usize) {
        self.controller.allow_processes(most);
    }

    /// A worker is missing, or only begins: what is measured now says nothing.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// Workers are free and nothing is left to hand out, or not.
    pub(crate) fn look(&mut self, idle: bool) {
        note(&mut self.idle, idle);
    }

    /// There is no memory for what could be handed out, or there is.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn look_short(&mut self, short: bool) {
        note(&mut self.short, short);
    }

    /// Whether it is time to measure, when so many elements have come since the run began.
    pub(crate) fn is_due(&self, indices: u64) -> bool {
        let (often, seconds, enough) = EARLY;
        let elapsed = self.last.elapsed();
        let is_early =
            indices.saturating_sub(self.before.indices) >= enough && self.began.elapsed() < seconds * self.tick;
        elapsed >= self.tick || (is_early && elapsed >= self.tick / often)
    }

    /// Decides on a new setting, if anything is to change. `longest` is the longest time for which the consumer
    /// did something else.
    pub(crate) fn step(&mut self, now: Totals, longest: Duration) -> Option<Setting> {
        let wall = self.last.elapsed();
        let part = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64();
        let wait_s = part(now.waited, self.before.waited).min(wall.as_secs_f64());
        if now.indices == self.before.indices && 2.0 * wait_s > wall.as_secs_f64() && wall < PATIENCE * self.tick {
            return None;
        }
        self.last = Instant::now();
        let (idle, short) = (std::mem::take(&mut self.idle.2), std::mem::take(&mut self.short.2));
        let before = std::mem::replace(&mut self.before, now);
        let pause = is_pause(longest, wall, wait_s, now.steps.saturating_sub(before.steps));
        self.pauses = if pause { self.pauses.saturating_add(1) } else { 0 };
        let m = Measurement {
            wall_s: wall.as_secs_f64(),
            wait_s,
            elements: now.indices.saturating_sub(before.indices) as f64,
            busy_s: part(now.busy, before.busy),
            locked_s: part(now.locked, before.locked),
            cpu_s: part(now.cpu, before.cpu),
            taken_s: part(now.taken, before.taken),
            window_full: idle > wall / 10 && part(now.blocked, before.blocked) > 0.01 * wall.as_secs_f64(),
            short_s: short.as_secs_f64(),
            disturbed: std::mem::take(&mut self.disturbed) || (1..=PAUSES).contains(&self.pauses),
        };
        let decision = self.controller.step(&m);
        self.follow(&m);
        let decision = decision?;
        tracing::info!("tuning: {decision}");
        self.effect = (0, 0.0, 0.0);
        self.decisions.push(decision);
        Some(self.controller.setting())
    }

    /// Notes what comes of the last decision; the first second after it belongs to the change itself.
    fn follow(&mut self, m: &Measurement) {
        let Some(last) = self.decisions.last_mut() else { return };
        let (seconds, elements, wall_s) = &mut self.effect;
        *seconds += 1;
        if (2..2 + EFFECT).contains(seconds) && !m.disturbed {
            *elements += m.elements;
            *wall_s += m.wall_s;
            last.rate_after = Some(*elements / *wall_s).filter(|rate| *rate > 0.0);
        }
    }
}

/// Something is so from now on, or is not.
fn note((was, last, so_far): &mut (bool, Instant, Duration), is: bool) {
    if *was {
        *so_far += last.elapsed();
    }
    (*was, *last) = (is, Instant::now());
}

/// Whether the consumer did something now and then that it does not do with every element: what lies ready is then
/// used up in a burst, and nothing is done for a while before.
fn is_pause(longest: Duration, wall: Duration, wait_s: f64, steps: u64) -> bool {
    let usual = (wall.as_secs_f64() - wait_s).max(0.0) / steps.max(1) as f64;
    longest > wall / 10 && longest.as_secs_f64() > 4.0 * usual
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_what_is_not_usual() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        assert!(!is_pause(ms(300), second, 0.1, 3), "a slow consumer");
        assert!(!is_pause(ms(20), second, 0.9, 100), "a fast one, which is made to wait");
        assert!(is_pause(ms(400), second, 0.1, 100));
        assert!(is_pause(ms(900), second, 0.0, 50));
        assert!(!is_pause(ms(1000), second, 0.0, 0), "nothing came, which is told otherwise");
    }
}
