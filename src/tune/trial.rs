//! A step up, and whether it was worth it.

use super::Knob;
use super::measurement::{HUNGRY, Measurement};
use super::setting::Setting;

/// So many seconds after a change its effect is judged, where it is not plain before.
const JUDGE: u32 = 4;
/// So many are the least.
const EARLY: u32 = 2;
/// A step that brought less than this share of what it should have is taken back.
const WORTH: f64 = 0.35;
/// One that brought this share is kept at once.
const PLAIN: f64 = 0.7;
/// A gain below this is noise.
const NOISE: f64 = 0.05;

/// A step up that is to be judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    pub(super) knob: Knob,
    from: Setting,
    to: Setting,
    rate: f64,
    predicted: f64,
    seconds: u32,
    elements: f64,
    wall_s: f64,
    wait_s: f64,
}

/// What is to become of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is too early to say.
    Open,
    /// It is kept.
    Worth,
    /// It is taken back to this setting; the whole of it brought so many times the rate before, and this rate.
    Trim { to: Setting, gained: f64, rate: f64 },
}

impl Trial {
    /// A step at a time when so many elements came per second, and the consumer would have taken `demand`.
    pub(super) fn new(knob: Knob, from: Setting, to: Setting, rate: f64, demand: f64) -> Self {
        let predicted = (rate * knob.of(to) as f64 / knob.of(from) as f64).min(demand);
        Self { knob, from, to, rate, predicted, seconds: 0, elements: 0.0, wall_s: 0.0, wait_s: 0.0 }
    }

    /// Takes in one more second.
    pub(super) fn judge(&mut self, m: &Measurement) -> Verdict {
        self.seconds += 1;
        self.elements += m.elements;
        self.wall_s += m.wall_s;
        self.wait_s += m.wait_s;
        let gain = self.elements / self.wall_s - self.rate;
        let hoped = self.predicted - self.rate;
        if self.seconds < EARLY || self.seconds < JUDGE && gain < PLAIN * hoped {
            return Verdict::Open;
        }
        // Nobody can ask for more than that the consumer waits no longer.
        if gain >= WORTH * hoped || self.wait_s < HUNGRY / 2.0 * self.wall_s {
            return Verdict::Worth;
        }
        let gained = gain / self.rate;
        let (from, to) = (self.knob.of(self.from), self.knob.of(self.to));
        // What it brought, so many bring in proportion; but how far ahead one works need not be in proportion to anything.
        let enough = match self.knob {
            _ if gained <= NOISE => from,
            Knob::Window => to,
            _ => (from as f64 * (1.0 + gained)).ceil() as usize,
        };
        if enough >= to {
            return Verdict::Worth;
        }
        let to = match self.knob {
            Knob::Processes => Setting { processes: enough, ..self.to },
            Knob::Threads => Setting { threads: enough, ..self.to },
            Knob::Window => self.from,
        };
        let to = if enough == from { self.from } else { to };
        Verdict::Trim { to, gained, rate: self.elements / self.wall_s }
    }
}

/// What a step was taken back from, until it is seen that nothing was lost by that: elements may have become dearer in
/// the meantime, or the machine slower.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) knob: Knob,
    rate: f64,
    seconds: u32,
    elements: f64,
    wall_s: f64,
}

impl Check {
    /// After a step that gave `rate`.
    pub(super) fn new(knob: Knob, rate: f64) -> Self {
        Self { knob, rate, seconds: 0, elements: 0.0, wall_s: 0.0 }
    }

    /// Takes in one more second; says whether the step was better after all, once that is known.
    pub(super) fn was_better(&mut self, m: &Measurement) -> Option<bool> {
        self.seconds += 1;
        self.elements += m.elements;
        self.wall_s += m.wall_s;
        let known = self.seconds >= EARLY;
        known.then(|| self.elements / self.wall_s < (1.0 - NOISE) * self.rate)
    }
}
