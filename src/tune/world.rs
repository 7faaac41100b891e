//! A simulated machine for tests, whose elements compute, wait and hold a lock.

use super::{Measurement, Setting};

/// Elements, their consumer, and the machine that evaluates them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    /// Seconds of an element on a core.
    pub(crate) cpu_s: f64,
    /// Relative increase of an element's time on a core for each further thread in the process.
    pub(crate) disturbed: f64,
    /// Seconds of an element spent blocked.
    pub(crate) blocked_s: f64,
    /// Whether an element holds the lock of the process's interpreter while it is on a core.
    pub(crate) locks: bool,
    /// Whether an element holds the lock while it is blocked.
    pub(crate) locks_while_blocked: bool,
    /// Maximum elements per second of a server.
    pub(crate) server: f64,
    /// Seconds of the stateful part per element, on a single thread.
    pub(crate) suffix_s: f64,
    /// Seconds of the consumer per element.
    pub(crate) step_s: f64,
    pub(crate) cores: usize,
}

/// Elements that take no time, for a consumer that does nothing else.
pub(crate) const NOTHING: World = World {
    cpu_s: 1e-6,
    disturbed: 0.0,
    blocked_s: 0.0,
    locks: false,
    locks_while_blocked: false,
    server: 1e9,
    suffix_s: 1e-6,
    step_s: 1e-6,
    cores: 2,
};

impl World {
    /// Returns this world with the disturbance of `threads` threads included in `cpu_s`.
    fn with(&self, threads: usize, processes: usize) -> Self {
        let others = (threads / processes.max(1)).saturating_sub(1);
        Self { cpu_s: self.cpu_s * (1.0 + self.disturbed * others as f64), disturbed: 0.0, ..*self }
    }

    /// Returns the elements per second of `threads` in `processes`, regardless of the consumer. With 0 processes, the
    /// threads run in this process.
    fn supply(&self, threads: usize, processes: usize) -> f64 {
        if self.disturbed > 0.0 {
            return self.with(threads, processes).supply(threads, processes);
        }
        let held =
            if self.locks { self.cpu_s } else { 0.0 } + if self.locks_while_blocked { self.blocked_s } else { 0.0 };
        let by_threads = threads as f64 / self.service_s();
        let by_lock = processes.max(1) as f64 / held.max(1e-12);
        by_threads.min(self.cores as f64 / self.cpu_s).min(by_lock).min(self.server).min(1.0 / self.suffix_s)
    }

    /// Returns the elements per second that the consumer gets. With 0 threads, `next` evaluates the elements.
    pub(crate) fn rate(&self, threads: usize, processes: usize) -> f64 {
        if threads == 0 {
            return (1.0 / (self.service_s() + self.suffix_s + self.step_s)).min(self.server);
        }
        self.supply(threads, processes).min(1.0 / self.step_s)
    }

    pub(crate) fn service_s(&self) -> f64 {
        self.cpu_s + self.blocked_s
    }

    /// Returns the best elements per second on a grid of threads and processes that goes far beyond the cores.
    pub(crate) fn best(&self, processes: usize) -> f64 {
        let counts = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
        let grid =
            counts.into_iter().flat_map(|threads| (1..=processes.min(threads)).map(move |p| (threads / p * p, p)));
        grid.map(|(threads, processes)| self.rate(threads, processes)).fold(0.0, f64::max)
    }

    /// Returns, per second, the time that the threads are at work, and the part of it before they have the lock.
    pub(crate) fn busy_s(&self, threads: usize, processes: usize) -> (f64, f64) {
        if self.disturbed > 0.0 {
            return self.with(threads, processes).busy_s(threads, processes);
        }
        let rate = self.rate(threads, processes);
        let work = rate * self.service_s();
        // Threads that wait for a core, a lock or a server are at work. A slower consumer or stateful part leaves them
        // idle.
        let is_fed = rate >= 0.999 / self.step_s || rate >= 0.999 / self.suffix_s;
        let busy = if is_fed { work.min(threads as f64) } else { threads as f64 };
        let waits_for_lock = (self.locks || self.locks_while_blocked) && rate > 0.97 * self.locked_limit(processes);
        (busy, if waits_for_lock && !is_fed { busy - work } else { 0.0 })
    }

    fn locked_limit(&self, processes: usize) -> f64 {
        World { server: 1e9, suffix_s: 1e-9, cores: 1 << 20, ..*self }.supply(1 << 20, processes)
    }

    /// Measures a second, with noise of a few percent: `noise` is from 0 to 1.
    pub(crate) fn second(&self, at: Setting, noise: f64) -> Measurement {
        let most = 1.0 / self.step_s;
        let rate = self.rate(at.threads, at.processes);
        let rate = if rate >= 0.999 * most { most } else { (rate * (1.0 + 0.04 * (noise - 0.5))).min(most) };
        let wait_s = (1.0 - rate * self.step_s).max(0.0);
        let (busy_s, locked_s) = self.busy_s(at.threads, at.processes);
        let cpu_s = rate * self.with(at.threads, at.processes).cpu_s;
        // If threads are idle, no work is left to hand out.
        let window_full = wait_s > 0.0 && busy_s < 0.9 * at.threads as f64;
        Measurement {
            wall_s: 1.0,
            wait_s,
            elements: rate,
            busy_s,
            locked_s,
            cpu_s,
            taken_s: cpu_s,
            short_s: 0.0,
            window_full,
            disturbed: false,
        }
    }
}

/// A world on a machine shared with other programs.
///
/// At times the other programs take half of the machine for a moment. Worker processes take one to three seconds to
/// start, and use a part of the machine while they start.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    world: World,
    random: u64,
    now_s: f64,
    /// Time until which other programs take half of the machine.
    others_until_s: f64,
    is_alone: bool,
    ready: usize,
    /// Times at which the starting processes become ready.
    starting: Vec<f64>,
}

/// Rate at which other programs come, per second, and the minimum and maximum length of their stay in seconds.
const OTHERS: (f64, f64, f64) = (0.1, 0.5, 3.0);
/// Share of the machine that a starting process leaves to others.
const LEFT: f64 = 0.7;

impl Shared {
    /// Creates a shared machine with `processes` processes that are ready.
    pub(crate) fn new(world: World, processes: usize, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { world, random, now_s: 0.0, others_until_s: 0.0, is_alone: false, ready: processes, starting: Vec::new() }
    }

    /// Removes the other programs.
    pub(crate) fn alone(self) -> Self {
        Self { others_until_s: f64::NEG_INFINITY, is_alone: true, ..self }
    }

    /// Returns a random number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 40) as f64 / f64::from(1 << 24)
    }

    /// Measures `seconds` seconds.
    pub(crate) fn pass(&mut self, at: Setting, seconds: f64) -> Measurement {
        let (begin, noise) = (self.now_s, self.random());
        self.now_s += seconds;
        let (often, least, most) = OTHERS;
        if !self.is_alone && self.others_until_s <= begin && self.random() < often * seconds {
            self.others_until_s = self.now_s + least + (most - least) * self.random();
        }
        while self.ready + self.starting.len() < at.processes {
            let ready = begin + 1.0 + 2.0 * self.random();
            self.starting.push(ready);
        }
        self.starting.truncate(at.processes.saturating_sub(self.ready));
        let disturbed = !self.starting.is_empty();
        self.ready = self.ready.min(at.processes) + self.starting.extract_if(.., |ready| *ready <= self.now_s).count();
        let running = Setting { threads: at.threads / at.processes * self.ready, processes: self.ready, ..at };
        let share = if self.others_until_s > begin { 0.5 } else { 1.0 } * if disturbed { LEFT } else { 1.0 };
        let m = self.world.second(running, noise);
        Measurement {
            wall_s: seconds,
            wait_s: m.wait_s * seconds,
            elements: m.elements * seconds * share,
            busy_s: m.busy_s * seconds,
            locked_s: m.locked_s * seconds,
            cpu_s: m.cpu_s * seconds * share,
            taken_s: m.taken_s * seconds * share,
            short_s: 0.0,
            window_full: m.window_full,
            disturbed,
        }
    }
}
