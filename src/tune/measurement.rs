//! One second's figures, and what they say by themselves.

/// The consumer waits too much.
pub(super) const HUNGRY: f64 = 0.02;
/// Cores are as good as always taken: the consumer and the system have the rest.
const TAKEN: f64 = 0.95;
/// Threads of a process that wait for a lock of theirs for this share of their work gain nothing from more of them.
const LOCKED: f64 = 0.25;
/// Work is mostly waiting where no more than this share of it is on a core.
const WAITS: f64 = 0.3;

/// Smallest share of free cores at which the number of processes may grow fourfold in a step. Below this share it doubles at most.
const FREE: f64 = 0.5;
/// Memory is missing where work waits for it for more than this share of the time.
const SHORT: f64 = 0.1;

/// Figures of about one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measurement {
    /// Seconds it covers.
    pub wall_s: f64,
    /// Seconds for which the consumer waited.
    pub wait_s: f64,
    /// Elements that the consumer got.
    pub elements: f64,
    /// Seconds of work of all threads together: on a core, waiting for one, or waiting for something else.
    pub busy_s: f64,
    /// Seconds of it until functions had the lock of their process's interpreter.
    pub locked_s: f64,
    /// Seconds of it for which they were on a core; 0 where that is not known.
    pub cpu_s: f64,
    /// Seconds for which cores were taken by them, by the consumer, and by what hands elements over.
    pub taken_s: f64,
    /// Whether as many ranges were under way or ready as there may be.
    pub window_full: bool,
    /// Seconds for which work could not be handed out, because what was made took all the memory that there is for it.
    pub short_s: f64,
    /// Whether it tells nothing: a worker was being replaced, or nothing ran.
    pub disturbed: bool,
}

impl Measurement {
    pub(super) fn wait(&self) -> f64 {
        self.wait_s / self.wall_s
    }

    pub(super) fn rate(&self) -> f64 {
        if self.wall_s > 0.0 { self.elements / self.wall_s } else { 0.0 }
    }

    /// Counts the threads that keep so many cores busy, as far as can be seen from `threads` of them; no fewer than those.
    ///
    /// A thread takes `cpu_s / busy_s` of a core as long as there are cores for all who want one. Once they are taken, whoever
    /// wants one waits for it and counts as busy; more threads would only wait longer.
    pub(crate) fn most_on(&self, cores: usize, threads: usize) -> usize {
        if self.cpu_s <= 0.0 || self.busy_s <= 0.0 {
            return usize::MAX;
        }
        let cores = cores as f64;
        if self.taken_s > TAKEN * self.wall_s * cores {
            return threads;
        }
        // What they do beside their work is in their CPU time, too. And they do not wait by turns: that cores are never idle
        // while some wait takes as many again as wait at a time.
        let each = (self.busy_s / self.cpu_s).max(1.0);
        ((cores * (2.0 * each - 1.0)).min(1e6) as usize).max(threads)
    }

    /// Whether it is memory that is missing, and not those who work.
    pub(super) fn is_short(&self) -> bool {
        self.short_s > SHORT * self.wall_s
    }

    /// Whether threads of a process mostly wait for each other.
    pub(super) fn is_locked(&self) -> bool {
        self.locked_s > LOCKED * self.busy_s
    }

    /// Counts the threads of `threads` that wait for something else than a core or the interpreter's lock: spread over more processes, as many
    /// are needed in each. 0 if elements mostly compute.
    pub(super) fn threads_at_work(&self, threads: usize) -> usize {
        if self.cpu_s <= 0.0 || self.cpu_s >= WAITS * self.busy_s {
            return 0;
        }
        (threads as f64 * (1.0 - self.locked_s / self.busy_s)).ceil() as usize
    }

    /// Returns true if half of the cores are free.
    pub(super) fn leaves_cores(&self, cores: usize) -> bool {
        self.taken_s < FREE * self.wall_s * cores as f64
    }

    /// Whether what threads do is waiting for something else than a core: then more of them cost little.
    pub(super) fn is_waiting(&self) -> bool {
        self.cpu_s > 0.0 && self.cpu_s < WAITS * self.busy_s && !self.is_locked()
    }

    /// Elements per second that the consumer would take.
    pub(super) fn demand(&self) -> f64 {
        self.elements / (self.wall_s - self.wait_s).max(self.wall_s * 1e-3)
    }
}
