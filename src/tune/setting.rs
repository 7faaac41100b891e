//! Settings, and the bounds that they are chosen within.

use std::time::Duration;

/// Most threads that tuning starts, in all processes together, for elements that wait.
pub(crate) const MANY_THREADS: usize = 256;

/// A choice of threads, processes and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Threads that evaluate elements, in all processes together: as many in each.
    pub threads: usize,
    /// Worker processes.
    pub processes: usize,
    /// Ranges of elements that are under way or ready.
    pub window: usize,
}

/// Bounds of what may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads that may be used at most: cores, memory, what was asked for.
    pub most_threads: usize,
    /// Threads of one process.
    pub most_threads_each: usize,
    /// Cores that there are for them.
    pub cores: usize,
    /// Processes, at least and at most.
    pub processes: (usize, usize),
    /// Ranges under way that there is memory for.
    pub most_window: usize,
    /// Time of too little work behind which there is one process fewer, where those are on machines of their own: each comes with all of its
    /// threads, and their number follows what the consumer waits, whatever takes cores.
    pub idle: Option<Duration>,
}

impl Bounds {
    /// Bounds where there is one process, and a core for every thread.
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

    /// `threads`, spread evenly over so many processes: the next multiple, or the one before if that is too many.
    pub(super) fn spread(&self, threads: usize, processes: usize) -> usize {
        if self.idle.is_some() {
            return self.most_threads_each * processes;
        }
        let most = (self.most_threads / processes).min(self.most_threads_each).max(1);
        threads.div_ceil(processes).clamp(1, most) * processes
    }
}
