//! The controller, which turns the figures of a second into at most one change.
//!
//! The controller follows from one law. A consumer that would take `demand` elements per second, each of which costs
//! `service` seconds of a thread, is fed by `demand × service` threads. Threads are added only if the consumer waits
//! and the threads are busy, and never more than keep the cores busy.
//!
//! Each step is judged by its gain, and taken back if the machine, not the number of threads, was the limit. A step
//! that is taken back is tried once more, because other programs may have disturbed it. If nothing more can be added
//! and the consumer still waits, fewer threads are tried, once. If more threads bring nothing, their shared process may
//! be the limit: a lock, an allocator. Then more processes are tried, if the bounds allow them.

use super::fewer::{self, Fewer};
use super::hold_off::HoldOff;
use super::measurement::{HUNGRY, Measurement};
use super::seconds::Seconds;
use super::setting::{Bounds, Setting};
use super::trial::{Check, Look, Trial, Verdict};
use super::{Decision, Knob};

/// Planned share of time that threads are busy. Above this share, random service times make the consumer wait.
const TARGET: f64 = 0.85;
/// Share of time that the consumer waits, below which it counts as fed.
const FED: f64 = 0.005;
/// Share of time that threads are busy, above which they count as always busy.
const BUSY: f64 = 0.9;
/// Share of time that threads are busy, above which added threads would be as busy.
const OFTEN: f64 = 0.6;
/// Consecutive seconds that must agree before something is added.
const CONFIRM: u32 = 2;
/// Seconds of little work that must pass before a thread is removed.
const IDLE: u32 = 15;
/// Seconds of waiting without anything to add that must pass before fewer threads are tried.
const STUCK: f64 = 6.0;

/// Controller of a pipeline's [`Setting`], driven by a measurement per second. See the [module](super).
#[derive(Clone, Debug)]
pub struct Controller {
    now: Setting,
    bounds: Bounds,
    /// Length of a second on the clock of `wall_s`; shorter in tests that have no time.
    second: f64,
    elapsed_s: f64,
    hunger: Hunger,
    idle: Idle,
    /// Seconds before the setting may change again.
    rest: u32,
    /// Hold-off for more threads or processes.
    more: HoldOff,
    /// Hold-off for a wider window.
    wider: HoldOff,
    /// Knobs whose last step up brought nothing.
    failed: Vec<Knob>,
    /// Knobs that were tried twice since they last brought a gain.
    doubted: Vec<Knob>,
    trial: Option<Trial>,
    check: Option<Check>,
    fewer: Option<Fewer>,
    tried_fewer: bool,
}

impl Controller {
    /// Creates a controller that starts from `start`.
    pub fn new(start: Setting, bounds: Bounds) -> Self {
        let processes = start.processes.clamp(bounds.processes.0.max(1), bounds.processes.1.max(1));
        let threads = bounds.spread(start.threads, processes);
        Self {
            now: Setting { threads, processes, window: start.window.max(1) },
            bounds,
            second: 1.0,
            elapsed_s: 0.0,
            hunger: Hunger::default(),
            idle: Idle::default(),
            rest: 1,
            more: HoldOff::default(),
            wider: HoldOff::default(),
            failed: Vec::new(),
            doubted: Vec::new(),
            trial: None,
            check: None,
            fewer: None,
            tried_fewer: false,
        }
    }

    /// Sets the length of a second on the clock of `wall_s`.
    #[must_use]
    pub(crate) fn with_second(self, seconds: f64) -> Self {
        Self { second: seconds, ..self }
    }

    /// Returns the present setting.
    pub fn setting(&self) -> Setting {
        self.now
    }

    /// Sets the maximum number of processes from now on, as limited by memory.
    pub fn allow_processes(&mut self, most: usize) {
        self.bounds.processes.1 = most.max(self.bounds.processes.0);
    }

    /// Takes a measurement and returns the change to make, if any.
    pub fn step(&mut self, m: &Measurement) -> Option<Decision> {
        self.elapsed_s += m.wall_s;
        self.more.pass();
        self.wider.pass();
        if self.now.processes > self.bounds.processes.1 {
            return Some(self.make_room(m));
        }
        if let Some(idle) = self.bounds.idle
            && let Some(decision) = self.dismiss(m, idle.as_secs_f64())
        {
            return Some(decision);
        }
        if m.disturbed || m.elements <= 0.0 || m.wall_s <= 0.0 {
            // A pause or a new worker changes the figures, so they show nothing about the settings.
            return None;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        let busy = m.busy_s / (m.wall_s * self.now.threads as f64);
        self.hunger.add(m, busy);
        if let Some(mut trial) = self.trial.take() {
            match trial.judge(m, self.second) {
                Verdict::Open => {
                    self.trial = Some(trial);
                    return None;
                }
                Verdict::Worth => self.keep(trial.knob),
                Verdict::Trim { to, gained, rate, explained } => {
                    let decision = self.take_back(m, &trial, to, gained);
                    if explained {
                        self.give_up(trial.knob);
                    } else {
                        self.check = Some(Check::new(trial, rate));
                    }
                    return Some(decision);
                }
            }
        }
        if let Some(mut check) = self.check.take() {
            let look = check.look(m, self.second);
            if look == Look::Open {
                self.check = Some(check);
                return None;
            }
            if let Some(decision) = self.look_again(&check, look) {
                return Some(decision);
            }
        }
        if let Some(mut fewer) = self.fewer.take() {
            match fewer.judge(m, self.second) {
                fewer::Verdict::Open => {
                    self.fewer = Some(fewer);
                    return None;
                }
                fewer::Verdict::Better => self.keep_fewer(),
                fewer::Verdict::Worse(gained) => {
                    let reason = format!("fewer brought {:+.0} %", 100.0 * gained);
                    return Some(self.change(m, Knob::Threads, fewer.from, reason));
                }
            }
        }
        self.feed().or_else(|| self.step_down()).or_else(|| self.shrink(m))
    }

    /// Retries a step that was taken back if other programs may have disturbed it; otherwise gives it up.
    fn look_again(&mut self, check: &Check, look: Look) -> Option<Decision> {
        let (trial, now) = (&check.trial, check.now());
        let knob = trial.knob;
        let is_first = !trial.again && (look == Look::Worse || !self.doubted.contains(&knob));
        let fits = trial.to.processes <= self.bounds.processes.1 && trial.to != self.now;
        if !(fits && (look == Look::Better || is_first)) {
            self.give_up(knob);
            return None;
        }
        if look == Look::Better {
            // Both directions were measured: the step brought a gain, and its removal a loss.
            self.keep(knob);
            return Some(self.change(&now, knob, trial.to, format!("{} bring less", knob.of(self.now))));
        }
        self.doubted.retain(|doubted| *doubted != knob);
        self.doubted.push(knob);
        let to = self.between(trial);
        let reason = if to == trial.to {
            "tried again, in case other programs slowed it down".to_owned()
        } else {
            format!("fewer than {}, which brought too little", knob.of(trial.to))
        };
        self.trial = Some(Trial::new(knob, self.now, to, now.rate(), now.demand()).again());
        Some(self.change(&now, knob, to, reason))
    }

    /// Returns the setting at the geometric mean of the present and the failed value of the knob.
    ///
    /// Returns the failed setting if no value lies between, or if the knob is the window.
    fn between(&self, trial: &Trial) -> Setting {
        let (from, to) = (trial.knob.of(self.now), trial.knob.of(trial.to));
        let middle = ((from * to) as f64).sqrt() as usize;
        if trial.knob == Knob::Window || middle <= from || middle >= to {
            return trial.to;
        }
        trial.knob.scaled(trial.to, middle, self.bounds)
    }

    /// Reduces the processes to the maximum for which there is memory, after their memory has grown.
    fn make_room(&mut self, m: &Measurement) -> Decision {
        let processes = self.bounds.processes.1;
        let next = Setting { threads: self.bounds.spread(self.now.threads, processes), processes, ..self.now };
        (self.trial, self.check, self.fewer) = (None, None, None);
        self.change(m, Knob::Processes, next, "each uses more memory than the budget allows for this number".to_owned())
    }

    /// Feeds a consumer that waits: adds threads if they are always busy, otherwise widens the window first.
    fn feed(&mut self) -> Option<Decision> {
        if self.hunger.seconds < CONFIRM {
            return None;
        }
        let (busy, m) = (self.hunger.busy(), self.hunger.seen.better_half());
        if busy > BUSY || self.bounds.idle.is_some() {
            return self.grow(&m).or_else(|| self.widen(&m));
        }
        // Threads may be idle at times because there are few ranges, or because elements differ widely in cost.
        self.widen(&m).or_else(|| if busy > OFTEN { self.grow(&m) } else { None })
    }

    /// Widens the window if it is full, the consumer waits, and threads are idle.
    ///
    /// The first range then takes long, and later ranges could be evaluated in the meantime.
    fn widen(&mut self, m: &Measurement) -> Option<Decision> {
        // A wide window costs only free memory. It may have to reach past elements that take a hundred times as long as
        // others.
        let window = (4 * self.now.window).max(4 * self.now.threads).min(self.bounds.most_window);
        if !self.hunger.is_full() || window <= self.now.window || !self.wider.is_over() {
            return None;
        }
        let next = Setting { window, ..self.now };
        self.trial =
            Some(Trial::new(Knob::Window, self.now, next, m.rate(), m.demand().min(m.rate() / self.hunger.busy())));
        let (wait, busy) = (pc(m.wait()), pc(self.hunger.busy()));
        let reason = format!("consumer waits {wait} while threads are busy {busy}: slow elements hold up others");
        Some(self.change(m, Knob::Window, next, reason))
    }

    fn grow(&mut self, m: &Measurement) -> Option<Decision> {
        if !self.more.is_over() {
            return None;
        }
        let (knob, next) = self.more(m)?;
        let mut reason = format!("consumer waits {}, threads are busy {}", pc(m.wait()), pc(self.hunger.busy()));
        if knob == Knob::Processes && self.failed.contains(&Knob::Threads) {
            reason += ", and more of them bring nothing";
        }
        // Keeps the number of ranges per thread, at least four, so that new threads have work.
        let as_before = self.now.window.saturating_mul(next.threads).div_ceil(self.now.threads);
        let window = as_before.max(4 * next.threads).min(self.bounds.most_window).max(self.now.window);
        if window > self.now.window {
            reason += &format!("; with a window of {window} instead of {}", self.now.window);
        }
        let next = Setting { window, ..next };
        // Threads that wait bring at most a gain in proportion to their number.
        let most = match m.threads_at_work(self.now.threads) {
            0 => f64::INFINITY,
            at_work => m.rate() * next.threads as f64 / at_work as f64,
        };
        self.trial = Some(Trial::new(knob, self.now, next, m.rate(), m.demand().min(most)));
        Some(self.change(m, knob, next, reason))
    }

    /// Returns more threads, or more processes if threads bring nothing or cannot grow.
    fn more(&mut self, m: &Measurement) -> Option<(Knob, Setting)> {
        let knobs = [Knob::Threads, Knob::Processes].map(|knob| (knob, self.raised(knob, m)));
        if m.is_locked() && knobs[1].1.is_some() {
            // A thread alone in its process waits for no lock. Measurements after the step would not show why more
            // threads bring nothing.
            self.give_up(Knob::Threads);
        }
        let possible = knobs.into_iter().filter_map(|(knob, next)| Some((knob, next?)));
        let possible: Vec<_> = possible.filter(|(knob, _)| !self.failed.contains(knob)).collect();
        if possible.is_empty() && !self.failed.is_empty() {
            // The limit is elsewhere: memory bandwidth, a disk, the stateful part.
            self.failed.clear();
            self.more.begin();
        }
        possible.into_iter().next()
    }

    fn raised(&self, knob: Knob, m: &Measurement) -> Option<Setting> {
        let now = self.now;
        let is_whole = self.bounds.idle.is_some();
        let most = if is_whole { usize::MAX } else { m.most_on(self.bounds.cores, now.threads) };
        let step = |from: usize, law: f64| {
            let is_cheap = if knob == Knob::Threads { m.is_waiting() } else { m.leaves_cores(self.bounds.cores) };
            let far = if is_cheap && !is_whole { 4 } else { 2 };
            // An increase of less than a quarter could not be distinguished from noise.
            let most = if self.more.is_first() { far * from } else { from + from.div_ceil(4) };
            (law.ceil().min(1e6) as usize).clamp(from + 1, most)
        };
        let next = match knob {
            Knob::Threads if m.is_locked() || is_whole => return None,
            Knob::Threads => {
                let law = m.demand() * (m.busy_s / m.elements) / TARGET;
                let threads = step(now.threads, law).min(most);
                Setting { threads: self.bounds.spread(threads, now.processes), ..now }
            }
            _ => {
                let law = now.processes as f64 * m.demand() / m.rate() / TARGET;
                let processes = step(now.processes, law).min(self.bounds.processes.1).min(most);
                let threads = m.threads_at_work(now.threads) * processes / now.processes;
                let threads = self.bounds.spread(threads.max(now.threads), processes);
                // More processes add neither threads that wait nor cores. They only remove the wait for a lock.
                let is_useless = threads <= now.threads && m.is_waiting() || most <= now.threads && !m.is_locked();
                if is_useless && !is_whole {
                    return None;
                }
                Setting { threads, processes, ..now }
            }
        };
        let more = if knob == Knob::Threads { next.threads > now.threads } else { next.processes > now.processes };
        more.then_some(next)
    }

    /// Records that the last step up was worthwhile.
    fn keep(&mut self, knob: Knob) {
        // Changes that brought nothing before may help now.
        (self.more, self.wider) = (HoldOff::default(), HoldOff::default());
        self.failed.retain(|failed| *failed != knob);
        self.doubted.retain(|doubted| *doubted != knob);
    }

    /// Records that the last step up was not worthwhile. The knob is not tried for a while.
    fn give_up(&mut self, knob: Knob) {
        if knob == Knob::Window {
            self.wider.begin();
        } else if !self.failed.contains(&knob) {
            self.failed.push(knob);
        }
    }

    /// Takes back the part of the last step up that brought nothing.
    fn take_back(&mut self, m: &Measurement, trial: &Trial, enough: usize, gained: f64) -> Decision {
        let knob = trial.knob;
        let is_whole = enough == knob.of(trial.from);
        let to = if is_whole { trial.from } else { knob.scaled(trial.to, enough, self.bounds) };
        let reason = format!("the step up brought {:+.0} %, which {} bring as well", 100.0 * gained, knob.of(to));
        self.change(m, knob, to, reason)
    }

    /// Halves the threads if the consumer waits, nothing can be added, and cores are short.
    ///
    /// The result shows whether the threads hinder each other.
    fn step_down(&mut self) -> Option<Decision> {
        let (now, m) = (self.now, self.hunger.seen.better_half());
        let is_stuck =
            self.hunger.seen.wall_s >= STUCK * self.second && m.most_on(self.bounds.cores, now.threads) <= now.threads;
        let next = Setting { threads: self.bounds.spread(now.threads / 2, now.processes), ..now };
        if self.tried_fewer || self.bounds.idle.is_some() || !is_stuck || m.is_locked() || next.threads >= now.threads {
            return None;
        }
        self.tried_fewer = true;
        self.fewer = Some(Fewer::new(now, m.rate()));
        let reason =
            format!("consumer waits {}, and the cores are taken: threads may be in each other's way", pc(m.wait()));
        Some(self.change(&m, Knob::Threads, next, reason))
    }

    /// Keeps fewer threads that bring more, and adds no threads for a while.
    fn keep_fewer(&mut self) {
        self.give_up(Knob::Threads);
        self.doubted.push(Knob::Threads);
        self.more.begin();
        // Still fewer threads may bring still more.
        self.tried_fewer = false;
    }

    /// Removes a quarter of the threads, or fewer if the rest would be idle for less than a quarter of the time.
    fn shrink(&mut self, m: &Measurement) -> Option<Decision> {
        if self.bounds.idle.is_some() {
            return None;
        }
        let now = self.now;
        let needed = (m.busy_s / m.wall_s / 0.75).ceil().max(1.0) as usize;
        let fewer = needed.max(now.threads - now.threads.div_ceil(4));
        // A process without a thread is not needed either.
        let processes = now.processes.min(fewer).max(self.bounds.processes.0);
        let next = Setting { threads: self.bounds.spread(fewer, processes), processes, ..now };
        self.idle.steps = if m.wait() < FED && next.threads < now.threads { self.idle.steps + 1 } else { 0 };
        if self.idle.steps < IDLE {
            return None;
        }
        let busy_then = m.busy_s / (m.wall_s * next.threads as f64);
        let reason =
            format!("consumer waits {}; {} threads would be busy {}", pc(m.wait()), next.threads, pc(busy_then));
        let knob = if processes < now.processes { Knob::Processes } else { Knob::Threads };
        Some(self.change(m, knob, next, reason))
    }

    /// Removes a process if the others would have been idle for a quarter of the time during the last `idle_s` seconds.
    ///
    /// Time in which the consumer requests nothing counts as idle too.
    fn dismiss(&mut self, m: &Measurement, idle_s: f64) -> Option<Decision> {
        let (now, fewer) = (self.now, self.now.processes.saturating_sub(1));
        let threads = self.bounds.spread(0, fewer.max(1));
        let is_idle = m.wait() < FED && m.busy_s <= 0.75 * m.wall_s * threads as f64;
        self.idle.seconds =
            if is_idle && fewer >= self.bounds.processes.0 { self.idle.seconds + m.wall_s } else { 0.0 };
        if self.idle.seconds < idle_s || fewer == 0 {
            return None;
        }
        let busy = pc(m.busy_s / (m.wall_s * now.threads as f64));
        let reason = format!(
            "consumer waits {}; threads are busy {busy}, with too little to do for {:.0} s",
            pc(m.wait()),
            self.idle.seconds
        );
        (self.trial, self.check) = (None, None);
        Some(self.change(m, Knob::Processes, Setting { threads, processes: fewer, ..now }, reason))
    }

    fn change(&mut self, m: &Measurement, knob: Knob, next: Setting, reason: String) -> Decision {
        let before = std::mem::replace(&mut self.now, next);
        self.rest = 1;
        (self.idle, self.hunger) = (Idle::default(), Hunger::default());
        let (from, to) = (knob.of(before), knob.of(next));
        Decision { at_s: self.elapsed_s, knob, from, to, reason, rate_before: m.rate(), rate_after: None }
    }
}

/// Time with little work.
#[derive(Clone, Copy, Debug, Default)]
struct Idle {
    /// Consecutive measurements with too many threads.
    steps: u32,
    /// Seconds with too many processes, if processes come and go as a whole.
    seconds: f64,
}

/// Consecutive seconds in which the consumer waited too much.
#[derive(Clone, Debug, Default)]
struct Hunger {
    seconds: u32,
    busy: f64,
    full: u32,
    seen: Seconds,
}

impl Hunger {
    fn add(&mut self, m: &Measurement, busy: f64) {
        if m.wait() <= HUNGRY || m.is_short() {
            *self = Self::default();
            return;
        }
        self.seconds += 1;
        self.busy += busy;
        self.full += u32::from(m.window_full);
        self.seen.add(m);
    }

    /// Returns the share of time that threads were busy.
    fn busy(&self) -> f64 {
        self.busy / f64::from(self.seconds.max(1))
    }

    /// Returns true if the window was full in most of the seconds.
    fn is_full(&self) -> bool {
        2 * self.full > self.seconds
    }
}

fn pc(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
