//! A step up, and the judgement of its effect.
//!
//! A step that brings little is taken back. It is then tried once more from below, because other programs may have
//! taken the machine in those seconds. That happens the first time a knob fails, and whenever the rate with the step
//! was lower than without it.

use super::Knob;
use super::measurement::{HUNGRY, Measurement};
use super::seconds::Seconds;
use super::setting::Setting;

/// Measurements before a step is judged, unless its effect is clear earlier.
const JUDGE: usize = 4;
/// Minimum number of measurements before a step is judged.
const EARLY: usize = 2;
/// Minimum seconds before a step is taken back, regardless of the number of measurements. Other programs may have
/// disturbed one of them.
const SURE: f64 = 3.0;
/// Share of the expected gain below which a step is taken back.
const WORTH: f64 = 0.35;
/// Share of the expected gain at which a step is kept at once.
const PLAIN: f64 = 0.7;
/// Relative gain below which a difference is noise.
const NOISE: f64 = 0.05;

/// A step up under trial.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) knob: Knob,
    pub(super) from: Setting,
    pub(super) to: Setting,
    /// Whether the step was taken back once before.
    pub(super) again: bool,
    rate: f64,
    predicted: f64,
    seen: Seconds,
}

/// Verdict on a step up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Too early to decide.
    Open,
    /// The step is kept.
    Worth,
    /// The step is taken back to the value `to` of its knob.
    ///
    /// The whole step brought the relative gain `gained` and the rate `rate`. `explained` is true if the cause is
    /// known, so that other programs are not to blame.
    Trim { to: usize, gained: f64, rate: f64, explained: bool },
}

impl Trial {
    /// Starts a trial at `rate` elements per second, for a consumer that would take `demand`.
    pub(super) fn new(knob: Knob, from: Setting, to: Setting, rate: f64, demand: f64) -> Self {
        let predicted = (rate * knob.of(to) as f64 / knob.of(from) as f64).min(demand);
        Self { knob, from, to, again: false, rate, predicted, seen: Seconds::default() }
    }

    /// Marks the trial as the second of its step.
    pub(super) fn again(self) -> Self {
        Self { again: true, ..self }
    }

    /// Adds a measurement and judges the step. `second` is the length of a second on the clock of `wall_s`.
    pub(super) fn judge(&mut self, m: &Measurement, second: f64) -> Verdict {
        self.seen.add(m);
        let (seen, now) = (self.seen.len(), self.seen.better_half());
        let gain = now.rate() - self.rate;
        let hoped = self.predicted - self.rate;
        let gains = |share: f64| gain >= (share * hoped).max(NOISE * self.rate);
        // A step cannot achieve more than a consumer that no longer waits.
        let is_fed = now.wait() < HUNGRY / 2.0;
        if seen < EARLY || seen < JUDGE && !gains(PLAIN) && !is_fed {
            return Verdict::Open;
        }
        if gains(WORTH) || is_fed {
            return Verdict::Worth;
        }
        let sure = if self.seen.is_steady() { SURE } else { 2.0 * SURE };
        if self.seen.wall_s < sure * second {
            return Verdict::Open;
        }
        let gained = gain / self.rate;
        let (from, to) = (self.knob.of(self.from), self.knob.of(self.to));
        // Assumes that the gain is proportional to the count. The effect of the window need not be proportional.
        let enough = match self.knob {
            _ if gained <= NOISE => from,
            Knob::Window => to,
            // A tenth of a thread or process is noise.
            _ => (from as f64 * (1.0 + gained) - 0.1).ceil() as usize,
        };
        if enough >= to {
            return Verdict::Worth;
        }
        let explained = self.knob == Knob::Threads && now.is_locked();
        Verdict::Trim { to: enough, gained, rate: now.rate(), explained }
    }
}

/// A step that was taken back, until its removal is judged.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) trial: Trial,
    /// Elements per second with the step.
    rate: f64,
    seen: Seconds,
}

/// Judgement of a step by the seconds after its removal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    /// Too early to decide.
    Open,
    /// The rate was higher with the step: elements have become more expensive in the meantime, or the machine slower.
    Better,
    /// The rate was about equal.
    Same,
    /// The rate was lower with the step.
    Worse,
}

impl Check {
    /// Starts a check of a step that gave `rate`.
    pub(super) fn new(trial: Trial, rate: f64) -> Self {
        Self { trial, rate, seen: Seconds::default() }
    }

    /// Adds a measurement and compares the rates. `second` is the length of a second on the clock of `wall_s`.
    pub(super) fn look(&mut self, m: &Measurement, second: f64) -> Look {
        self.seen.add(m);
        let (now, enough) = (self.now().rate(), if self.seen.is_steady() { 1.0 } else { 2.0 });
        match (now - self.rate) / self.rate {
            _ if self.seen.len() < EARLY || self.seen.wall_s < enough * second => Look::Open,
            more if more < -NOISE => Look::Better,
            more if more > NOISE => Look::Worse,
            _ => Look::Same,
        }
    }

    /// Returns the figures since the step was taken back.
    pub(super) fn now(&self) -> Measurement {
        self.seen.better_half()
    }
}
