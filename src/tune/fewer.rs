//! A step down, for a consumer that waits although the cores are taken.
//!
//! Threads can stand in each other's way: they decode what another of them has just decoded, or the system moves their memory to and
//! fro. Nothing that is measured says so; fewer of them do, for a second or two, once in a run.

use super::measurement::Measurement;
use super::seconds::Seconds;
use super::setting::Setting;

/// Fewer threads are kept where they bring this share more.
const GAIN: f64 = 0.1;
/// Seconds until that is believed; that they bring less is seen after one.
const SURE: f64 = 3.0;

/// A step down that is to be judged.
#[derive(Clone, Debug)]
pub(super) struct Fewer {
    pub(super) from: Setting,
    rate: f64,
    seen: Seconds,
}

/// Fate of the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It is too early to say.
    Open,
    /// It is kept.
    Better,
    /// It is taken back; it brought this share more, which is below 0 as a rule.
    Worse(f64),
}

impl Fewer {
    /// A step at a time when so many elements came per second.
    pub(super) fn new(from: Setting, rate: f64) -> Self {
        Self { from, rate, seen: Seconds::default() }
    }

    /// Takes in one more measurement, where a second has so many seconds.
    pub(super) fn judge(&mut self, m: &Measurement, second: f64) -> Verdict {
        self.seen.add(m);
        let gained = self.seen.better_half().rate() / self.rate - 1.0;
        match self.seen.wall_s() / second {
            seconds if seconds < 1.0 || gained >= GAIN && seconds < SURE => Verdict::Open,
            _ if gained >= GAIN => Verdict::Better,
            _ => Verdict::Worse(gained),
        }
    }
}
