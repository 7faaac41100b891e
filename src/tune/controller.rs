//! The controller: from one second's figures to at most one change.
//!
//! It follows from one law: a consumer that would take `demand` elements per second, each of which costs `service`
//! seconds of one thread, is fed by `demand × service` threads. More are asked for only where the consumer waits and the
//! threads are busy; each step is judged by what it gained, and taken back where the machine, not their number, was the limit.

use super::{Decision, Knob};

/// Threads are planned to be busy for this share of the time: above it, random service times make the consumer wait.
const TARGET: f64 = 0.85;
/// The consumer waits too much.
const HUNGRY: f64 = 0.02;
/// The consumer hardly waits.
const FED: f64 = 0.005;
/// Threads are as good as always busy.
const BUSY: f64 = 0.9;
/// So many seconds in a row must agree before threads are added.
const CONFIRM: u32 = 2;
/// So many seconds after a change its effect is judged.
const JUDGE: u32 = 4;
/// So many seconds of little work must pass before a thread is taken away.
const IDLE: u32 = 15;
/// A step that brought less than this share of what it should have is taken back.
const WORTH: f64 = 0.35;
const HOLD_OFF: (u32, u32) = (20, 640);

/// What was measured in about one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measurement {
    /// Seconds it covers.
    pub wall_s: f64,
    /// Seconds for which the consumer waited.
    pub wait_s: f64,
    /// Elements that the consumer got.
    pub elements: f64,
    /// Seconds of work of all threads together.
    pub busy_s: f64,
    /// Whether as many ranges were under way or ready as there may be.
    pub window_full: bool,
    /// Whether it tells nothing: a worker was being replaced, or nothing ran.
    pub disturbed: bool,
}

/// What may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads that may be used at most: cores, memory, what was asked for.
    pub most_threads: usize,
    /// Ranges under way that there is memory for.
    pub most_window: usize,
}

/// Decides, second by second. See the [module](super).
#[derive(Clone, Debug)]
pub struct Controller {
    threads: usize,
    window: usize,
    bounds: Bounds,
    elapsed_s: f64,
    hungry: u32,
    idle: u32,
    /// Seconds until something may be changed again.
    rest: u32,
    hold_off: u32,
    /// Seconds until more threads may be tried again.
    barred: u32,
    trial: Option<Trial>,
}

/// A step up that is to be judged.
#[derive(Clone, Copy, Debug)]
struct Trial {
    from: usize,
    rate: f64,
    predicted: f64,
    seconds: u32,
    elements: f64,
    wall_s: f64,
}

impl Controller {
    /// Starts from `threads` and `window`.
    pub fn new(threads: usize, window: usize, bounds: Bounds) -> Self {
        Self {
            threads: threads.clamp(1, bounds.most_threads.max(1)),
            window: window.max(1),
            bounds,
            elapsed_s: 0.0,
            hungry: 0,
            idle: 0,
            rest: 1,
            hold_off: HOLD_OFF.0,
            barred: 0,
            trial: None,
        }
    }

    /// Threads that it wants now.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Ranges that it wants under way or ready now.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Takes one measurement, and decides.
    pub fn step(&mut self, m: &Measurement) -> Option<Decision> {
        self.elapsed_s += m.wall_s;
        self.barred = self.barred.saturating_sub(1);
        if m.disturbed || m.elements <= 0.0 || m.wall_s <= 0.0 {
            // What a pause or a new worker does to the figures says nothing about the settings.
            return None;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        if self.trial.is_some() {
            return self.judge(m);
        }
        let (wait, busy) = (m.wait_s / m.wall_s, m.busy_s / (m.wall_s * self.threads as f64));
        if wait > 0.01 && m.window_full && busy < BUSY && self.window < self.bounds.most_window {
            return Some(self.widen(m, wait, busy));
        }
        if let Some(decision) = self.grow(m, wait, busy) {
            return Some(decision);
        }
        self.shrink(m, wait)
    }

    /// Everything that may be under way is, the consumer waits, and threads have nothing to do: the head of the line
    /// takes long, and what stands behind it could be done in the meantime.
    fn widen(&mut self, m: &Measurement, wait: f64, busy: f64) -> Decision {
        let to = (2 * self.window).min(self.bounds.most_window);
        let reason =
            format!("consumer waits {} while threads are busy {}: slow elements hold up others", pc(wait), pc(busy));
        let from = std::mem::replace(&mut self.window, to);
        self.decided(m, Knob::Window, from, to, reason)
    }

    fn grow(&mut self, m: &Measurement, wait: f64, busy: f64) -> Option<Decision> {
        self.hungry = if wait > HUNGRY && busy > BUSY { self.hungry + 1 } else { 0 };
        if self.hungry < CONFIRM || self.barred > 0 || self.threads >= self.bounds.most_threads {
            return None;
        }
        let service = m.busy_s / m.elements;
        let demand = m.elements / (m.wall_s - m.wait_s).max(m.wall_s * 1e-3);
        let law = (demand * service / TARGET).ceil();
        let step = if self.hold_off > HOLD_OFF.0 { self.threads + 1 } else { (self.threads * 3).div_ceil(2) };
        let to =
            (law.min(1e6) as usize).clamp(self.threads + 1, step.max(self.threads + 1)).min(self.bounds.most_threads);
        let rate = m.elements / m.wall_s;
        let predicted = (rate * to as f64 / self.threads as f64).min(demand);
        let trial = Trial { from: self.threads, rate, predicted, seconds: 0, elements: 0.0, wall_s: 0.0 };
        self.trial = Some(trial);
        let reason = format!("consumer waits {}, threads are busy {}", pc(wait), pc(busy));
        let from = std::mem::replace(&mut self.threads, to);
        Some(self.decided(m, Knob::Threads, from, to, reason))
    }

    /// Whether the last step up was worth it; it is taken back if not.
    fn judge(&mut self, m: &Measurement) -> Option<Decision> {
        let trial = self.trial.as_mut()?;
        trial.seconds += 1;
        trial.elements += m.elements;
        trial.wall_s += m.wall_s;
        if trial.seconds < JUDGE {
            return None;
        }
        let trial = self.trial.take()?;
        let gain = trial.elements / trial.wall_s - trial.rate;
        if gain >= WORTH * (trial.predicted - trial.rate) {
            self.hold_off = HOLD_OFF.0;
            return None;
        }
        // Something else is the limit: memory bandwidth, a lock, a disk, the stateful part.
        self.barred = self.hold_off;
        self.hold_off = (2 * self.hold_off).min(HOLD_OFF.1);
        let gained = 100.0 * gain / trial.rate.max(f64::MIN_POSITIVE);
        let reason = format!("the step up brought {gained:+.0} %: threads are not the limit");
        let from = std::mem::replace(&mut self.threads, trial.from);
        Some(self.decided(m, Knob::Threads, from, trial.from, reason))
    }

    /// A quarter of the threads fewer, or as many as leave the rest idle for a quarter of the time.
    fn shrink(&mut self, m: &Measurement, wait: f64) -> Option<Decision> {
        let needed = (m.busy_s / m.wall_s / 0.75).ceil().max(1.0) as usize;
        let fewer = needed.max(self.threads - self.threads.div_ceil(4)).max(1);
        self.idle = if wait < FED && fewer < self.threads { self.idle + 1 } else { 0 };
        if self.idle < IDLE {
            return None;
        }
        let busy_then = m.busy_s / (m.wall_s * fewer as f64);
        let reason = format!("consumer waits {}; {fewer} would be busy {}", pc(wait), pc(busy_then));
        let from = std::mem::replace(&mut self.threads, fewer);
        Some(self.decided(m, Knob::Threads, from, fewer, reason))
    }

    fn decided(&mut self, m: &Measurement, knob: Knob, from: usize, to: usize, reason: String) -> Decision {
        (self.hungry, self.idle, self.rest) = (0, 0, 1);
        let rate_before = m.elements / m.wall_s;
        Decision { at_s: self.elapsed_s, knob, from, to, reason, rate_before, rate_after: None }
    }
}

fn pc(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
