//! The RAM budget and its division among workers and shared memory.
//!
//! `budget >= slab + workers x (heap + extra)`, and every term holds by construction. The slab has a fixed size, each
//! of its pages has memory in at most one worker's file, and the kernel limits each worker's private memory to its
//! heap.
//!
//! Unused memory of workers does not go to the slab. Views hold slab memory for an unlimited time, so the memory could
//! not be reclaimed for an element that needs a large heap. Workers, in contrast, can be stopped. Their part therefore
//! stays one pool, shared by as few or many workers as pay, or used entirely by a single worker.

mod far;
mod refusals;
#[cfg(test)]
mod tests;

use std::time::Duration;

use super::options::{Count, Elsewhere, MpOptions};
use super::slab::PAGE;
use crate::error::Result;
use crate::machine::Machine;
use crate::tune::MANY_THREADS;

/// Memory that a worker needs, depending on its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Bytes that the heap limit does not cover: relocated pages of the program, the main stack.
    pub(crate) beside_heap_bytes: u64,
    /// Bytes of the smallest usable heap.
    least_heap_bytes: u64,
    /// Bytes of heap in use after the pipeline is loaded.
    loaded_bytes: u64,
    /// Bytes of the process that forks workers; one such process serves all workers.
    forker_bytes: u64,
}

impl Needs {
    const RUST: Self =
        Self { beside_heap_bytes: 2 << 20, least_heap_bytes: 64 << 20, loaded_bytes: 16 << 20, forker_bytes: 0 };
    /// Needs of an interpreter with libraries such as NumPy.
    const PYTHON: Self = Self {
        beside_heap_bytes: 10 << 20,
        least_heap_bytes: 192 << 20,
        loaded_bytes: 128 << 20,
        forker_bytes: 64 << 20,
    };

    /// Returns the bytes of `workers` workers with a heap of `heap_bytes` each.
    fn of_workers(&self, workers: usize, heap_bytes: u64) -> u64 {
        (workers as u64).saturating_mul(heap_bytes.saturating_add(self.beside_heap_bytes))
    }

    /// Returns the bytes to reserve beside all workers, for the forker and the smallest slab.
    fn beside_workers(&self) -> u64 {
        LEAST_SLAB + self.forker_bytes
    }
}

/// Minimum bytes of the slab: room for a few extents.
const LEAST_SLAB: u64 = 16 * PAGE as u64;
/// Maximum bytes of the slab; more ready elements would bring nothing.
const MOST_SLAB: u64 = 4 << 30;

/// Maximum bytes of a task's result; larger results do not transfer better.
const PART: u64 = 4 << 20;

/// Initial threads of a worker if the number is automatic and elements come from a remote store.
const FAR_THREADS: usize = 16;
/// Heap bytes per thread: its stack and its allocator's cache. Half of a heap is for threads.
const THREAD: u64 = 4 << 20;

/// The divided budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Maximum number of worker processes.
    pub(crate) workers: usize,
    /// Initial number of worker processes.
    pub(crate) start_workers: usize,
    /// Cores of the machine.
    pub(crate) cores: usize,
    /// Maximum number of threads of each worker.
    pub(crate) threads_per_worker: usize,
    /// Maximum number of threads of all workers together.
    pub(crate) threads_in_all: usize,
    /// Threads of each worker that are active at once.
    pub(crate) active_threads: usize,
    /// Whether the numbers of active threads and of workers are tuned.
    pub(crate) tuned: bool,
    /// Total bytes of the budget.
    pub(crate) budget_bytes: u64,
    /// Bytes of shared memory.
    pub(crate) slab_bytes: u64,
    /// Bytes of private memory of all workers, including memory outside their heaps.
    pub(crate) pool_bytes: u64,
    pub(crate) needs: Needs,
    /// Heap bytes of each worker if the number of workers is at its maximum.
    pub(crate) heap_bytes: u64,
    /// Heap bytes of a worker that runs alone.
    pub(crate) solo_heap_bytes: u64,
    /// Bytes of the largest element, and of the part of the slab that is reserved for the next element in order.
    pub(crate) max_element_bytes: u64,
    /// Settings for workers on other machines, if workers run there.
    pub(crate) elsewhere: Option<Elsewhere>,
}

impl Plan {
    /// Divides the budget of `options` on a machine with `cores` and `available_bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the arithmetic, if the budget is too small.
    pub(crate) fn new(options: &MpOptions, cores: usize, available_bytes: u64) -> Result<Self> {
        let budget_bytes = options.memory.budget.unwrap_or(available_bytes / 4);
        let needs = if options.interpreted { Needs::PYTHON } else { Needs::RUST };
        let (workers, start_workers) = processes(options, budget_bytes, needs);
        let given = options.memory.heap;
        let heap_bytes =
            given.unwrap_or_else(|| (budget_bytes / 2 / workers.max(1) as u64).max(needs.least_heap_bytes));
        let pool_bytes = needs.of_workers(workers, heap_bytes);
        let solo_heap_bytes =
            given.unwrap_or_else(|| pool_bytes.saturating_sub(needs.beside_heap_bytes).max(heap_bytes));
        let slab_bytes = budget_bytes
            .checked_sub(pool_bytes.saturating_add(needs.forker_bytes))
            .filter(|&left| left >= LEAST_SLAB)
            .map(|left| left.min(MOST_SLAB) / PAGE as u64 * PAGE as u64)
            .ok_or_else(|| refusals::too_small(budget_bytes, workers, heap_bytes, needs))?;
        let (threads_per_worker, threads_in_all, active_threads) =
            threads(options, cores, (workers, start_workers), solo_heap_bytes);
        Ok(Self {
            workers,
            start_workers,
            cores,
            threads_per_worker,
            threads_in_all,
            active_threads,
            tuned: options.tune,
            budget_bytes,
            slab_bytes,
            pool_bytes,
            needs,
            heap_bytes,
            solo_heap_bytes,
            max_element_bytes: refusals::fitting(options.memory.element.unwrap_or(slab_bytes / 4), slab_bytes)?,
            elsewhere: None,
        })
    }

    /// Checks that each initial worker has room for a configuration of `bytes` in two copies: as received and as
    /// decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the arithmetic and the `largest` part of the configuration.
    pub(crate) fn check_cfg(&self, bytes: u64, largest: Option<&str>) -> Result<()> {
        let heap = self.share(self.start_workers);
        let needed = bytes.saturating_mul(2).saturating_add(self.needs.loaded_bytes);
        if needed <= heap { Ok(()) } else { Err(self.too_large(bytes, needed, heap, largest)) }
    }

    /// Returns the heap bytes of each of `workers` workers.
    pub(crate) fn share(&self, workers: usize) -> u64 {
        if self.start_workers == self.workers {
            return self.heap_bytes;
        }
        (self.pool_bytes / workers.max(1) as u64)
            .saturating_sub(self.needs.beside_heap_bytes)
            .min(self.solo_heap_bytes)
            .max(self.heap_bytes)
    }

    /// Returns the number of workers that can have heaps of `least` bytes, at least 1.
    pub(crate) fn workers_with(&self, least: u64) -> usize {
        if self.start_workers == self.workers {
            return self.workers;
        }
        (1..=self.workers).rev().find(|&n| self.share(n) >= least.max(self.needs.least_heap_bytes)).unwrap_or(1)
    }

    /// Returns the bytes of an extent, unless one element takes more. Each of `threads` threads can have two such
    /// extents.
    pub(crate) fn part_bytes(&self, threads: usize) -> usize {
        let (most, threads) = match self.elsewhere {
            Some(elsewhere) => (elsewhere.block_bytes, threads.max(1)),
            // Extents are sized for at least `FAR_THREADS` threads from the start.
            None => (PART, threads.max(FAR_THREADS)),
        };
        most.min((self.slab_bytes - self.max_element_bytes) / (2 * (1 + threads as u64))) as usize
    }

    /// Returns the target time of a range.
    pub(crate) fn range_time(&self) -> Duration {
        // A message to another machine and its block take 1 to 2 ms, through several processes of an engine.
        Duration::from_millis(if self.elsewhere.is_some() { 50 } else { 5 })
    }

    /// Returns the slab bytes that a worker may keep for arrays held by its functions. All workers together keep at
    /// most half of the slab without the reserve for the next element in order.
    pub(crate) fn keep(&self) -> u64 {
        (self.slab_bytes - self.max_element_bytes) / 2 / self.workers.max(1) as u64
    }

    /// Returns true if tuning may change the number of threads or workers.
    pub(crate) fn has_choice(&self) -> bool {
        self.tuned && (self.threads_per_worker > self.active_threads || self.workers > self.start_workers)
    }

    /// Returns the maximum bytes of a group that is evaluated into one batch. Every thread with a core can work on a
    /// group, and no group exceeds the maximum element.
    pub(crate) fn most_group(&self) -> u64 {
        let threads = self.threads_in_all.min(self.cores.max(self.start_workers));
        ((self.slab_bytes - self.max_element_bytes) / (1 + threads as u64)).min(self.max_element_bytes)
    }
}

/// Returns the maximum and the initial number of worker processes, which share half of the budget.
fn processes(options: &MpOptions, budget_bytes: u64, needs: Needs) -> (usize, usize) {
    let most = match options.numbers.workers {
        Count::Fixed(workers) => return (workers, workers),
        Count::Auto if !options.tune => 1,
        Count::Auto => {
            let each = needs.of_workers(1, options.memory.heap.unwrap_or(needs.least_heap_bytes));
            let fit = usize::try_from(budget_bytes / 2 / each).unwrap_or(usize::MAX);
            options.numbers.most_workers.unwrap_or(1).min(fit.max(1))
        }
    };
    (most, most.min(options.numbers.start_workers.unwrap_or(1)))
}

/// Returns the number of threads: per worker at most, of all workers at most, and per worker active at the start.
fn threads(
    options: &MpOptions,
    cores: usize,
    (workers, start_workers): (usize, usize),
    solo_heap_bytes: u64,
) -> (usize, usize, usize) {
    // Enough threads to keep the cores busy; more if elements come from a remote store or tuning finds that threads
    // wait.
    let busy_in_all = if options.far && workers > 0 { cores.max(FAR_THREADS) } else { cores };
    let busy = match options.numbers.threads {
        Count::Fixed(threads) => threads,
        Count::Auto => busy_in_all.div_ceil(start_workers.max(1)),
    }
    .max(1);
    let (each, in_all) = match options.numbers.threads {
        Count::Auto if options.tune && workers > 0 => {
            let fit = usize::try_from(solo_heap_bytes / 2 / THREAD).unwrap_or(MANY_THREADS);
            let most = cores.max(workers).max(busy * start_workers).max(fit.clamp(FAR_THREADS, MANY_THREADS));
            (if start_workers == workers { most.div_ceil(workers) } else { most }, most)
        }
        _ => (busy, busy.saturating_mul(workers)),
    };
    (each, in_all, options.numbers.start_threads.unwrap_or(busy).clamp(1, each))
}

/// Returns the total memory of this machine or of this control group, whichever is less.
pub(crate) fn total() -> Option<u64> {
    let machine = Machine::here();
    machine.memory("MemTotal:").into_iter().chain(machine.group_memory()).min()
}

/// Returns the memory that is available in this control group without evicting others.
pub(crate) fn available() -> u64 {
    Machine::here().available_bytes().unwrap_or(4 << 30)
}
