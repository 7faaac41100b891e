//! A step up, and whether it was worth it.
//!
//! A step that brings little is taken back, and then looked at once more from below, as other programs may have taken the
//! machine in just those seconds: the first time that a knob fails, and whenever less came with the step than without it.

use super::Knob;
use super::measurement::{HUNGRY, Measurement};
use super::seconds::Seconds;
use super::setting::Setting;

/// Measurements after a change until its effect is judged, where it is not plain before.
const JUDGE: usize = 4;
/// The least number of them.
const EARLY: usize = 2;
/// Nothing is taken back for less than so many seconds, however many measurements they have: one may be somebody else's.
const SURE: f64 = 3.0;
/// A step that brought less than this share of what it should have is taken back.
const WORTH: f64 = 0.35;
/// One that brought this share is kept at once.
const PLAIN: f64 = 0.7;
/// A gain below this is noise.
const NOISE: f64 = 0.05;

/// A step up that is to be judged.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) knob: Knob,
    pub(super) from: Setting,
    pub(super) to: Setting,
    /// Whether it was taken back once before.
    pub(super) again: bool,
    rate: f64,
    predicted: f64,
    seen: Seconds,
}

/// Fate of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is too early to say.
    Open,
    /// It is kept.
    Worth,
    /// It is taken back to this value of its knob; the whole of it brought so many times the rate before, and this rate. Whether it is
    /// known why: nobody else is to blame.
    Trim { to: usize, gained: f64, rate: f64, explained: bool },
}

impl Trial {
    /// A step at a time when so many elements came per second, and the consumer would have taken `demand`.
    pub(super) fn new(knob: Knob, from: Setting, to: Setting, rate: f64, demand: f64) -> Self {
        let predicted = (rate * knob.of(to) as f64 / knob.of(from) as f64).min(demand);
        Self { knob, from, to, again: false, rate, predicted, seen: Seconds::default() }
    }

    /// Takes in one more measurement, where a second has so many seconds.
    pub(super) fn judge(&mut self, m: &Measurement, second: f64) -> Verdict {
        self.seen.add(m);
        let (seen, now) = (self.seen.len(), self.seen.better_half());
        let gain = now.rate() - self.rate;
        let hoped = self.predicted - self.rate;
        let gains = |share: f64| gain >= (share * hoped).max(NOISE * self.rate);
        // Nobody can ask for more than that the consumer waits no longer.
        let is_fed = now.wait() < HUNGRY / 2.0;
        if seen < EARLY || seen < JUDGE && !gains(PLAIN) && !is_fed {
            return Verdict::Open;
        }
        if gains(WORTH) || is_fed {
            return Verdict::Worth;
        }
        let sure = if self.seen.is_steady() { SURE } else { 2.0 * SURE };
        if self.seen.wall_s() < sure * second {
            return Verdict::Open;
        }
        let gained = gain / self.rate;
        let (from, to) = (self.knob.of(self.from), self.knob.of(self.to));
        // What it brought, so many bring in proportion; but how far ahead one works need not be in proportion to anything.
        let enough = match self.knob {
            _ if gained <= NOISE => from,
            Knob::Window => to,
            // A tenth of one is noise.
            _ => (from as f64 * (1.0 + gained) - 0.1).ceil() as usize,
        };
        if enough >= to {
            return Verdict::Worth;
        }
        let explained = self.knob == Knob::Threads && now.is_locked();
        Verdict::Trim { to: enough, gained, rate: now.rate(), explained }
    }
}

/// A step that was taken back, until it is seen what became of that.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) trial: Trial,
    /// Elements per second with the step.
    rate: f64,
    seen: Seconds,
}

/// Judgement of a step by the seconds after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Look {
    /// It is too early to say.
    Open,
    /// It was better with the step: elements have become dearer in the meantime, or the machine slower.
    Better,
    /// It was neither better nor worse.
    Same,
    /// It was worse with the step.
    Worse,
}

impl Check {
    /// After a step that gave `rate`.
    pub(super) fn new(trial: Trial, rate: f64) -> Self {
        Self { trial, rate, seen: Seconds::default() }
    }

    /// Takes in one more measurement, where a second has so many seconds.
    pub(super) fn look(&mut self, m: &Measurement, second: f64) -> Look {
        self.seen.add(m);
        let (now, enough) = (self.now().rate(), if self.seen.is_steady() { 1.0 } else { 2.0 });
        match (now - self.rate) / self.rate {
            _ if self.seen.len() < EARLY || self.seen.wall_s() < enough * second => Look::Open,
            more if more < -NOISE => Look::Better,
            more if more > NOISE => Look::Worse,
            _ => Look::Same,
        }
    }

    /// Figures since the step was taken back.
    pub(super) fn now(&self) -> Measurement {
        self.seen.better_half()
    }
}
