//! A step down, for a consumer that waits although the cores are taken.
//!
//! Threads can hinder each other: they repeat each other's decoding, or the system moves their memory back and forth.
//! No measurement shows that directly. So the controller tries fewer threads, once in a run, for a second or two.

use super::measurement::Measurement;
use super::seconds::Seconds;
use super::setting::Setting;

/// Smallest relative gain at which fewer threads are kept.
const GAIN: f64 = 0.1;
/// Seconds before a gain is trusted. A loss is trusted after one second.
const SURE: f64 = 3.0;

/// A step down under trial.
#[derive(Clone, Debug)]
pub(super) struct Fewer {
    pub(super) from: Setting,
    rate: f64,
    seen: Seconds,
}

/// Verdict on a step down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Too early to decide.
    Open,
    /// The step is kept.
    Better,
    /// The step is taken back. Contains the relative gain, which is usually negative.
    Worse(f64),
}

impl Fewer {
    /// Starts a trial at `rate` elements per second.
    pub(super) fn new(from: Setting, rate: f64) -> Self {
        Self { from, rate, seen: Seconds::default() }
    }

    /// Adds a measurement and judges the step. `second` is the length of a second on the clock of `wall_s`.
    pub(super) fn judge(&mut self, m: &Measurement, second: f64) -> Verdict {
        self.seen.add(m);
        let gained = self.seen.better_half().rate() / self.rate - 1.0;
        match self.seen.wall_s / second {
            seconds if seconds < 1.0 || gained >= GAIN && seconds < SURE => Verdict::Open,
            _ if gained >= GAIN => Verdict::Better,
            _ => Verdict::Worse(gained),
        }
    }
}
