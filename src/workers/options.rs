//! Options of worker processes.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::exec::MOST_THREADS;
use crate::units::budget::check_budget;

/// A number that is chosen by the user or automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// Chosen automatically for this machine.
    #[default]
    Auto,
    /// Exactly this number.
    Fixed(usize),
}

impl Count {
    /// Returns the number that the user has chosen.
    pub(crate) fn given(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Fixed(n) => Some(n),
        }
    }
}

from_as!(usize => Count, |n| Self::Fixed(n));

/// Converts `None` to [`Count::Auto`].
impl From<Option<usize>> for Count {
    fn from(n: Option<usize>) -> Self {
        n.map_or(Self::Auto, Self::Fixed)
    }
}

/// Policy for an element that kills every worker that evaluates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Poison {
    /// The element ends the run.
    #[default]
    Error,
    /// The element is dropped and counted in the report. Inside [`lanes`](crate::dataset::iter::lanes()) the element
    /// still ends the run: later elements of a stream can only be found by reading all earlier elements.
    Skip,
}

/// Options of worker processes: see [`mp_prefetch`](super::mp_prefetch). No option changes an element.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are given to `mp_prefetch`"]
pub struct MpOptions {
    pub(crate) numbers: Numbers,
    pub(crate) memory: Memory,
    pub(crate) deadline: Option<Duration>,
    pub(crate) retries: u32,
    pub(crate) poison: Poison,
    pub(crate) tune: bool,
    pub(crate) start_window: Option<usize>,
    pub(crate) tick: Duration,
    pub(crate) counted: bool,
    /// Whether workers run an interpreter with libraries, which needs more memory than a pipeline in Rust.
    pub(crate) interpreted: bool,
    /// Whether the pipeline reads from object stores.
    pub(crate) far: bool,
    /// Factor over the 99th percentile of task times after which a task is also sent to another worker, on another
    /// machine if there is any.
    pub(crate) hedge: Option<f64>,
    /// Whether functions in a worker allocate their arrays in shared memory directly.
    pub(crate) arrays_in_slab: bool,
}

/// Numbers of workers and of threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) workers: Count,
    /// Maximum number of workers if the number is tuned; 1 by default.
    pub(crate) most_workers: Option<usize>,
    /// Initial number of workers if the number is tuned; 1 by default.
    pub(crate) start_workers: Option<usize>,
    /// Threads of each worker.
    pub(crate) threads: Count,
    /// Initial number of active threads of each worker if the number is tuned.
    pub(crate) start_threads: Option<usize>,
}

/// Limits of memory in bytes; each has a default that depends on the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Bytes of all workers together, shared and private.
    pub(crate) budget: Option<u64>,
    /// Private bytes of each worker.
    pub(crate) heap: Option<u64>,
    /// Bytes of the largest element.
    pub(crate) element: Option<u64>,
}

/// Settings for workers on other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// Maximum bytes of a block.
    pub(crate) block_bytes: u64,
    /// Time of low load after which one worker is released.
    pub(crate) idle: Duration,
    /// Whether the workers also serve other passes; all passes then send a given range to one worker.
    pub(crate) shared: bool,
}

/// Environment variable: `0` makes functions in a worker allocate arrays on its heap; the arrays are then copied to
/// shared memory.
const ARRAYS_IN_SLAB: &str = "GRISTMILL_ARRAYS_IN_SLAB";

default_as!(MpOptions, Self::auto());

impl MpOptions {
    /// Returns the defaults: one worker with a thread per core, and a quarter of the available memory.
    pub fn auto() -> Self {
        Self {
            numbers: Numbers::default(),
            memory: Memory::default(),
            deadline: Some(Duration::from_secs(300)),
            retries: 3,
            poison: Poison::Error,
            tune: true,
            start_window: None,
            tick: Duration::from_secs(1),
            counted: true,
            interpreted: false,
            far: false,
            hedge: None,
            arrays_in_slab: std::env::var_os(ARRAYS_IN_SLAB).is_none_or(|value| value != "0"),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let Numbers { workers, most_workers, threads, .. } = self.numbers;
        if threads == Count::Fixed(0) {
            return Err(Error::config("threads_per_worker is 0").help("1 or more, or leave it out"));
        }
        if most_workers == Some(0) {
            return Err(Error::config("max_workers is 0").help("1 or more, or leave it out; `workers(0)` starts none"));
        }
        let counts =
            [("workers", workers.given()), ("max_workers", most_workers), ("threads_per_worker", threads.given())];
        if let Some((name, Some(count))) = counts.into_iter().find(|(_, count)| *count > Some(MOST_THREADS)) {
            return Err(Error::config(format!("{name} is {count}, and must be {MOST_THREADS} or less")));
        }
        self.memory.budget.map_or(Ok(()), check_budget)
    }
}

impl MpOptions {
    setters! {
        /// Sets the number of worker processes; 0 evaluates on threads of this process. For stages written in Rust, a
        /// second worker only makes a crash cheaper.
        pub workers(workers: impl Into<Count>) => numbers.workers = workers.into();

        /// Sets the maximum number of worker processes if [`workers`](Self::workers) is automatic; 1 by default.
        ///
        /// A run starts with one worker. More processes are tried if more threads bring nothing, because elements wait
        /// for a lock or an allocator that threads of a process share. Added processes are kept if they pay. The memory
        /// of the first worker is divided among all workers.
        pub max_workers(most: usize) => numbers.most_workers = Some(most);

        /// Sets the number of threads that evaluate elements in each worker; the maximum if the number is tuned.
        ///
        /// By default, one worker starts with one thread per core. If elements come from a store, all workers together
        /// start with at least 16 threads. Tuning goes up to 256 threads in total if elements mostly wait and the heaps
        /// have room.
        pub threads_per_worker(threads: impl Into<Count>) => numbers.threads = threads.into();

        /// Sets the maximum bytes of shared memory plus private memory of all workers, at every instant. The default is
        /// a quarter of the available memory of the machine or of the control group, whichever is less.
        ///
        /// The limit holds by construction: shared memory has a fixed size, and the kernel limits the private memory of
        /// each worker to its [heap](Self::worker_heap). The limit does not cover:
        /// - shared memory that code in a worker maps or writes to memory files,
        /// - processes that a worker starts, each of which has a limit equal to the worker's,
        /// - the page cache, mapped files and program text,
        /// - this process's heap: the elements of a batch, a window or rows that are assembled here.
        ///
        /// A control group limits all of these. The actual use of workers and their child processes is measured from
        /// time to time. A warning and a note in the report appear if the use exceeded the budget.
        pub ram_budget(bytes: u64) => memory.budget = Some(bytes);

        /// Sets the private memory of each worker in bytes. The default is half of the budget divided by the number of
        /// workers, but at least 64 MiB, or 192 MiB if workers run Python.
        ///
        /// An allocation beyond the limit fails, which ends the worker. With the default, an element over which several
        /// workers died is evaluated once more before it is blamed. The last attempt runs in a worker with that entire
        /// half of the budget.
        pub worker_heap(bytes: u64) => memory.heap = Some(bytes);

        /// Sets the maximum bytes of an element; a quarter of the slab by default.
        pub max_element(bytes: u64) => memory.element = Some(bytes);

        /// Sets the maximum time for a range of elements before its worker counts as hanging; `None` disables the
        /// limit.
        pub deadline(deadline: impl Into<Option<Duration>>) => deadline = deadline.into();

        /// Sets how many workers a range of elements may kill before the faulty element is located and handled.
        pub retries(retries: u32) => retries = retries.max(1);

        /// Sets the policy for an element that kills every worker that evaluates it.
        pub on_poison(poison: Poison) => poison = poison;

        /// Sets whether the number of active threads and the window follow the consumer's demand; true by default.
        pub tune(yes: bool) => tune = yes;

        /// Sets the initial number of active threads of each worker if the number is tuned. The default is all
        /// requested threads, or one per core.
        pub start_threads(threads: usize) => numbers.start_threads = Some(threads);

        /// Sets the initial number of ranges in progress or ready, if that number is tuned; two per thread by default.
        pub start_window(ranges: usize) => start_window = Some(ranges);

        /// Sets the tuning interval; one second by default.
        #[doc(hidden)]
        pub tick: Duration;

        /// Turns counts and times of stages on or off, so that their cost can be measured.
        #[doc(hidden)]
        pub counted(yes: bool) => counted = yes;
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
