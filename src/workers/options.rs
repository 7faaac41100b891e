//! Options of worker processes.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::exec::MOST_THREADS;
use crate::units::check_budget;

/// A number of something: chosen, or left to the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// As many as pay here.
    #[default]
    Auto,
    /// Just so many.
    Fixed(usize),
}

impl From<usize> for Count {
    fn from(n: usize) -> Self {
        Self::Fixed(n)
    }
}

/// `None` leaves it to the machine.
impl From<Option<usize>> for Count {
    fn from(n: Option<usize>) -> Self {
        n.map_or(Self::Auto, Self::Fixed)
    }
}

/// The fate of an element that kills every worker that evaluates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Poison {
    /// It ends the run.
    #[default]
    Error,
    /// It is left out, and counted in the report. Inside [`lanes`](crate::dataset::iter::lanes()) it ends the run all the same:
    /// what comes behind an element of a stream is only known by reading it.
    Skip,
}

/// Options of worker processes: see [`mp_prefetch`](super::mp_prefetch). None of it changes an element.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are given to `mp_prefetch`"]
pub struct MpOptions {
    pub(crate) workers: Count,
    pub(crate) max_workers: usize,
    pub(crate) threads_per_worker: Count,
    pub(crate) ram_budget: Option<u64>,
    pub(crate) worker_heap: Option<u64>,
    pub(crate) max_element: Option<u64>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retries: u32,
    pub(crate) poison: Poison,
    pub(crate) tune: bool,
    pub(crate) start_threads: Option<usize>,
    /// Workers at the start, where their number is tuned; one at first.
    pub(crate) start_workers: Option<usize>,
    pub(crate) start_window: Option<usize>,
    pub(crate) tick: Duration,
    pub(crate) counted: bool,
    /// Whether what a worker runs is an interpreter, with libraries of its own, which needs more memory than a pipeline in Rust.
    pub(crate) interpreted: bool,
    /// Whether it reads from stores.
    pub(crate) far: bool,
    /// A task that takes so many times as long as 99 of 100 is asked of another worker, too, of another machine if there is one.
    pub(crate) hedge: Option<f64>,
    /// Whether arrays that functions make in a worker lie in shared memory from the start.
    pub(crate) arrays_in_slab: bool,
}

/// The way of workers that are on other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// Bytes that a block should have at most.
    pub(crate) block_bytes: u64,
    /// Time of too little work behind which there is one fewer.
    pub(crate) idle: Duration,
    /// Whether they are of other passes, too: then the same ranges are asked of the same workers.
    pub(crate) shared: bool,
}

/// Set to `0`, it has arrays that functions make in a worker lie in its heap, from where they are copied.
const ARRAYS_IN_SLAB: &str = "GRISTMILL_ARRAYS_IN_SLAB";

impl Default for MpOptions {
    fn default() -> Self {
        Self::auto()
    }
}

impl MpOptions {
    /// One worker with a thread for every core, a quarter of the available memory.
    pub fn auto() -> Self {
        Self {
            workers: Count::Auto,
            max_workers: 1,
            threads_per_worker: Count::Auto,
            ram_budget: None,
            worker_heap: None,
            max_element: None,
            deadline: Some(Duration::from_secs(300)),
            retries: 3,
            poison: Poison::Error,
            tune: true,
            start_threads: None,
            start_workers: None,
            start_window: None,
            tick: Duration::from_secs(1),
            counted: true,
            interpreted: false,
            far: false,
            hedge: None,
            arrays_in_slab: std::env::var_os(ARRAYS_IN_SLAB).is_none_or(|value| value != "0"),
        }
    }

    /// Worker processes; 0 evaluates on threads of this process. Stages written in Rust gain nothing from a second one but
    /// that a crash costs less.
    pub fn workers(mut self, workers: impl Into<Count>) -> Self {
        self.workers = workers.into();
        self
    }

    /// Worker processes at most, where [`workers`](Self::workers) is left to the machine; 1 if it is not given. There is one at the
    /// start. Where more threads bring nothing, because elements wait for a lock or an allocator that threads of a process
    /// share, more processes are tried, and kept if they pay. Each has its memory taken from what one had alone.
    pub fn max_workers(mut self, most: usize) -> Self {
        self.max_workers = most;
        self
    }

    /// Threads that evaluate elements in each worker, at most where that is tuned.
    ///
    /// If it is not given, one worker begins with one for every core, and where elements come from a store all workers together with
    /// at least 16; tuning goes up to 256 in all if elements mostly wait and the heaps have room for them.
    pub fn threads_per_worker(mut self, threads: impl Into<Count>) -> Self {
        self.threads_per_worker = threads.into();
        self
    }

    /// Bytes that shared memory and the private memory of all workers take together at most, at every instant; a quarter of
    /// the available memory (of the control group, where that is less) if it is not given.
    ///
    /// It holds by construction: shared memory has one size, and the kernel refuses each worker more private memory than its
    /// [heap](Self::worker_heap). Not in it is what that limit does not see: shared memory that code in a worker maps or
    /// writes to memory files, and processes that it starts, which have the same limit each; nor the page cache and mapped
    /// files, program text, and this process's own heap: the elements of a batch, a window or rows that are put together here. A
    /// control group limits those. What workers and the processes below them use is measured now and then, and a warning and a
    /// note in the report say if it was more.
    pub fn ram_budget(mut self, bytes: u64) -> Self {
        self.ram_budget = Some(bytes);
        self
    }

    /// Bytes of private memory of each worker; if it is not given, half of the budget divided by the workers, but 64 MiB at
    /// least, or 192 MiB where they run Python. A worker that wants more has its allocation fail, which ends it. If it is not given, and several workers died over an
    /// element, it is evaluated once more by a worker that has all of that half, before it is blamed.
    pub fn worker_heap(mut self, bytes: u64) -> Self {
        self.worker_heap = Some(bytes);
        self
    }

    /// Bytes that one element may have; a quarter of the slab if it is not given.
    pub fn max_element(mut self, bytes: u64) -> Self {
        self.max_element = Some(bytes);
        self
    }

    /// Sets how long a range of elements may take before its worker counts as hanging; `None` for ever.
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets how many workers a range of elements may kill before the element that does it is sought and dealt with.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries.max(1);
        self
    }

    /// Sets what becomes of an element that kills every worker that evaluates it.
    pub fn on_poison(mut self, poison: Poison) -> Self {
        self.poison = poison;
        self
    }

    /// Whether the number of threads at work, and how far they work ahead, follow what the consumer needs; they do at first.
    pub fn tune(mut self, yes: bool) -> Self {
        self.tune = yes;
        self
    }

    /// Threads of each worker that work at the start, where that is tuned; by default all that were asked for, or one for every
    /// core.
    pub fn start_threads(mut self, threads: usize) -> Self {
        self.start_threads = Some(threads);
        self
    }

    /// Ranges of elements that may be under way or ready at the start, where that is tuned; two for every thread at first.
    pub fn start_window(mut self, ranges: usize) -> Self {
        self.start_window = Some(ranges);
        self
    }

    /// Sets how often it is tuned: once a second at first.
    #[doc(hidden)]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// Without counts and times of stages, so that it can be measured what those cost.
    #[doc(hidden)]
    pub fn counted(mut self, yes: bool) -> Self {
        self.counted = yes;
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.threads_per_worker == Count::Fixed(0) {
            return Err(Error::config("threads_per_worker is 0").help("1 or more, or leave it out"));
        }
        if self.max_workers == 0 {
            return Err(Error::config("max_workers is 0").help("1 or more, or leave it out; `workers(0)` starts none"));
        }
        let fixed = |count| if let Count::Fixed(n) = count { n } else { 0 };
        let counts = [
            ("workers", fixed(self.workers)),
            ("max_workers", self.max_workers),
            ("threads_per_worker", fixed(self.threads_per_worker)),
        ];
        if let Some((name, count)) = counts.into_iter().find(|(_, count)| *count > MOST_THREADS) {
            return Err(Error::config(format!("{name} is {count}, and must be {MOST_THREADS} or less")));
        }
        self.ram_budget.map_or(Ok(()), check_budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_at_all_is_refused_where_that_cannot_be_meant() {
        assert!(MpOptions::auto().check().is_ok() && MpOptions::auto().workers(0).check().is_ok());
        let error = MpOptions::auto().max_workers(0).check().unwrap_err();
        assert_eq!((error.message(), error.help_text().is_some()), ("max_workers is 0", true));
        assert_eq!(MpOptions::auto().threads_per_worker(0).check().unwrap_err().message(), "threads_per_worker is 0");
    }

    #[test]
    fn more_than_any_machine_has_is_refused_and_bytes_that_were_meant_as_mebibytes() {
        let refused = |options: MpOptions| options.check().unwrap_err();
        for (name, options) in [
            ("workers", MpOptions::auto().workers(1 << 40)),
            ("max_workers", MpOptions::auto().max_workers(1 << 40)),
            ("threads_per_worker", MpOptions::auto().threads_per_worker(1 << 40)),
        ] {
            let expected = format!("{name} is 1099511627776, and must be 4096 or less");
            assert_eq!(refused(options).message(), expected);
        }
        let error = refused(MpOptions::auto().ram_budget(16384));
        assert_eq!(error.message(), "ram_budget is 16384 bytes, and must be 1 MiB or more");
        assert!(error.help_text().unwrap().ends_with("did you mean 16384MiB?"));
    }
}
