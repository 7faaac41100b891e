//! Settings and their bounds.

use std::time::Duration;

/// Maximum number of threads that tuning starts for elements that wait, in all processes together.
pub(crate) const MANY_THREADS: usize = 256;

/// Number of threads and processes, and size of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Threads that evaluate elements, in all processes together. Each process has an equal number.
    pub threads: usize,
    /// Worker processes.
    pub processes: usize,
    /// Ranges of elements in progress or ready.
    pub window: usize,
}

/// Bounds on settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of threads, as limited by cores, memory and the user's options.
    pub most_threads: usize,
    /// Maximum number of threads in a process.
    pub most_threads_each: usize,
    /// Cores available to the threads.
    pub cores: usize,
    /// Minimum and maximum number of processes.
    pub processes: (usize, usize),
    /// Maximum number of ranges in progress for which there is memory.
    pub most_window: usize,
    /// Time of too little work before a process is dismissed; set only if processes run on separate machines.
    ///
    /// Each process then comes with all of its threads. The number of processes follows the consumer's waiting,
    /// regardless of the use of cores.
    pub idle: Option<Duration>,
}

impl Bounds {
    /// Returns bounds for a single process with a core for every thread.
    pub fn of_threads(most_threads: usize, most_window: usize) -> Self {
        Self {
            most_threads,
            most_threads_each: most_threads,
            cores: most_threads,
            processes: (1, 1),
            most_window,
            idle: None,
        }
    }

    /// Spreads `threads` evenly over `processes`: rounds up to a multiple, or down if that exceeds the maximum.
    pub(super) fn spread(&self, threads: usize, processes: usize) -> usize {
        if self.idle.is_some() {
            return self.most_threads_each * processes;
        }
        let most = (self.most_threads / processes).min(self.most_threads_each).max(1);
        threads.div_ceil(processes).clamp(1, most) * processes
    }
}
