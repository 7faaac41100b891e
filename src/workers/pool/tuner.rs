//! Measures once a second, and asks the controller.

use std::time::{Duration, Instant};

use crate::tune::{Bounds, Controller, Decision, Measurement, Setting};

const TICK: Duration = Duration::from_secs(1);

/// Sums since the run began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) busy: Duration,
    pub(super) indices: u64,
    /// Time for which the stateful part had no elements to work on.
    pub(super) blocked: Duration,
    pub(super) waited: Duration,
}

/// See the [module](self).
pub(super) struct Tuner {
    controller: Controller,
    last: Instant,
    before: Totals,
    disturbed: bool,
    pub(super) decisions: Vec<Decision>,
}

impl Tuner {
    pub(super) fn new(start: Setting, bounds: Bounds) -> Self {
        Self {
            controller: Controller::new(start, bounds),
            last: Instant::now(),
            before: Totals::default(),
            disturbed: true,
            decisions: Vec::new(),
        }
    }

    pub(super) fn setting(&self) -> Setting {
        self.controller.setting()
    }

    /// There is memory for so many workers.
    pub(super) fn allow_workers(&mut self, most: usize) {
        self.controller.allow_processes(most);
    }

    /// A worker is missing: what is measured now says nothing.
    pub(super) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// Whether it is time to measure.
    pub(super) fn is_due(&self) -> bool {
        self.last.elapsed() >= TICK
    }

    /// What to change to, if anything is to change. `idle` is whether workers were free and nothing was left to hand out.
    pub(super) fn step(&mut self, now: Totals, idle: bool) -> Option<Setting> {
        let wall = self.last.elapsed();
        self.last = Instant::now();
        let before = std::mem::replace(&mut self.before, now);
        let part = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64();
        let m = Measurement {
            wall_s: wall.as_secs_f64(),
            wait_s: part(now.waited, before.waited).min(wall.as_secs_f64()),
            elements: now.indices.saturating_sub(before.indices) as f64,
            busy_s: part(now.busy, before.busy),
            window_full: idle && part(now.blocked, before.blocked) > 0.01 * wall.as_secs_f64(),
            disturbed: std::mem::take(&mut self.disturbed),
        };
        let rate = m.elements / m.wall_s;
        let decision = self.controller.step(&m);
        if let Some(last) = self.decisions.last_mut().filter(|last| rate > 0.0 && last.rate_after.is_none()) {
            last.rate_after = Some(rate);
        }
        let decision = decision?;
        tracing::info!("tuning: {decision}");
        self.decisions.push(decision);
        Some(self.controller.setting())
    }
}
