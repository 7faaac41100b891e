//! Figures of a second, and the facts that follow from them directly.

/// Share of time spent waiting, above which the consumer waits too much.
pub(super) const HUNGRY: f64 = 0.02;
/// Share of the cores above which all count as taken. The consumer and the system use the rest.
const TAKEN: f64 = 0.95;
/// Share of work spent waiting for the process's lock, above which more threads in the process gain nothing.
const LOCKED: f64 = 0.25;
/// Share of work spent on a core, below which work counts as mostly waiting.
const WAITS: f64 = 0.3;

/// Smallest share of free cores at which the number of processes may grow fourfold in a step. Below this share it
/// doubles at most.
const FREE: f64 = 0.5;
/// Share of time that work waits for memory, above which memory counts as short.
const SHORT: f64 = 0.1;

/// Figures of about one second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measurement {
    /// Seconds that the measurement covers.
    pub wall_s: f64,
    /// Seconds for which the consumer waited.
    pub wait_s: f64,
    /// Elements that the consumer received.
    pub elements: f64,
    /// Seconds of work of all threads together: on a core, waiting for a core, or waiting for something else.
    pub busy_s: f64,
    /// Part of `busy_s` in which functions waited for the lock of their process's interpreter.
    pub locked_s: f64,
    /// Part of `busy_s` on a core; 0 if unknown.
    pub cpu_s: f64,
    /// Seconds for which cores were taken by the threads, the consumer, and the code that hands elements over.
    pub taken_s: f64,
    /// Whether the window was full: no further range could be in progress or ready.
    pub window_full: bool,
    /// Seconds in which work could not be handed out, because results took all the memory available to them.
    pub short_s: f64,
    /// Whether the figures are unusable: a worker was being replaced, or nothing ran.
    pub disturbed: bool,
}

impl Measurement {
    pub(super) fn wait(&self) -> f64 {
        self.wait_s / self.wall_s
    }

    pub(super) fn rate(&self) -> f64 {
        if self.wall_s > 0.0 { self.elements / self.wall_s } else { 0.0 }
    }

    /// Returns the number of threads that keep `cores` cores busy, estimated from `threads` threads; at least
    /// `threads`.
    ///
    /// A thread takes `cpu_s / busy_s` of a core while there are cores for all threads that need one. Once all cores
    /// are taken, threads that need a core wait for it and count as busy. More threads would only wait longer.
    pub(crate) fn most_on(&self, cores: usize, threads: usize) -> usize {
        if self.cpu_s <= 0.0 || self.busy_s <= 0.0 {
            return usize::MAX;
        }
        let cores = cores as f64;
        if self.taken_s > TAKEN * self.wall_s * cores {
            return threads;
        }
        // CPU time also covers activity beside the work, hence the lower limit of 1. Threads do not wait by turns. To
        // keep the cores busy, there must be an extra thread for each thread that waits at a time.
        let each = (self.busy_s / self.cpu_s).max(1.0);
        ((cores * (2.0 * each - 1.0)).min(1e6) as usize).max(threads)
    }

    /// Returns true if memory is missing, not threads.
    pub(super) fn is_short(&self) -> bool {
        self.short_s > SHORT * self.wall_s
    }

    /// Returns true if the threads of a process mostly wait for each other.
    pub(super) fn is_locked(&self) -> bool {
        self.locked_s > LOCKED * self.busy_s
    }

    /// Returns the number of threads, out of `threads`, that wait for something other than a core or the interpreter's
    /// lock.
    ///
    /// Returns 0 if elements mostly compute. If the work is spread over more processes, each needs this number.
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

    /// Returns true if threads mostly wait for something other than a core, so that more threads cost little.
    pub(super) fn is_waiting(&self) -> bool {
        self.cpu_s > 0.0 && self.cpu_s < WAITS * self.busy_s && !self.is_locked()
    }

    /// Returns the elements per second that the consumer would take.
    pub(super) fn demand(&self) -> f64 {
        self.elements / (self.wall_s - self.wait_s).max(self.wall_s * 1e-3)
    }
}
