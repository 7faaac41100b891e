//! The RAM budget and its division among workers and shared memory.
//!
//! `budget >= slab + workers x (heap + extra)`, and every term holds by construction. The slab has a fixed size, each
//! of its pages has memory in at most one worker's file, and the kernel limits each worker's private memory to its
//! heap.
//!
//! Unused memory of workers does not go to the slab. Views hold slab memory for an unlimited time, so the memory could
//! not be reclaimed for an element that needs a large heap. Workers, in contrast, can be stopped. Their part therefore
//! stays one pool, shared by as few or many workers as pay, or used entirely by a single worker.

#[cfg(any(feature = "python", test))]
mod far;

use std::time::Duration;

use super::options::{Count, Elsewhere, MpOptions};
use super::slab::PAGE;
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::tune::MANY_THREADS;
use crate::units::Bytes;

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
        let budget_bytes = options.ram_budget.unwrap_or(available_bytes / 4);
        let needs = if options.interpreted { Needs::PYTHON } else { Needs::RUST };
        let (workers, start_workers) = processes(options, budget_bytes, needs);
        let given = options.worker_heap;
        let heap_bytes =
            given.unwrap_or_else(|| (budget_bytes / 2 / workers.max(1) as u64).max(needs.least_heap_bytes));
        let pool_bytes = needs.of_workers(workers, heap_bytes);
        let solo_heap_bytes =
            given.unwrap_or_else(|| pool_bytes.saturating_sub(needs.beside_heap_bytes).max(heap_bytes));
        let slab_bytes = budget_bytes
            .checked_sub(pool_bytes.saturating_add(needs.forker_bytes))
            .filter(|&left| left >= LEAST_SLAB)
            .map(|left| left.min(MOST_SLAB) / PAGE as u64 * PAGE as u64)
            .ok_or_else(|| too_small(budget_bytes, workers, heap_bytes, needs))?;
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
            max_element_bytes: max_element(options, slab_bytes)?,
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
        if needed <= heap {
            return Ok(());
        }
        let what = largest.map_or_else(
            || format!("the pipeline's configuration has {}", Bytes(bytes)),
            |largest| format!("{largest} to each worker"),
        );
        // As in `new`: half of the budget is for heaps.
        let budget = needed.saturating_add(self.needs.beside_heap_bytes).saturating_mul(2 * self.start_workers as u64);
        Err(Error::config(format!(
            "{what}; with a copy of it and {} for other data, a worker needs {} of heap, but has {}",
            Bytes(self.needs.loaded_bytes),
            Bytes(needed),
            Bytes(heap)
        ))
        .help(format!(
            "open large data inside the function, once in each worker, by its path (or in worker_init_fn); or raise \
             ram_budget from {} to {} or more, or set `worker_heap`, or use fewer workers",
            Bytes(self.budget_bytes),
            Bytes::at_least(budget)
        )))
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
    let most = match options.workers {
        Count::Fixed(workers) => return (workers, workers),
        Count::Auto if !options.tune => 1,
        Count::Auto => {
            let each = needs.of_workers(1, options.worker_heap.unwrap_or(needs.least_heap_bytes));
            let fit = usize::try_from(budget_bytes / 2 / each).unwrap_or(usize::MAX);
            options.max_workers.min(fit.max(1))
        }
    };
    (most, most.min(options.start_workers.unwrap_or(1)))
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
    let busy = match options.threads_per_worker {
        Count::Fixed(threads) => threads,
        Count::Auto => busy_in_all.div_ceil(start_workers.max(1)),
    }
    .max(1);
    let (each, in_all) = match options.threads_per_worker {
        Count::Auto if options.tune && workers > 0 => {
            let fit = usize::try_from(solo_heap_bytes / 2 / THREAD).unwrap_or(MANY_THREADS);
            let most = cores.max(workers).max(busy * start_workers).max(fit.clamp(FAR_THREADS, MANY_THREADS));
            (if start_workers == workers { most.div_ceil(workers) } else { most }, most)
        }
        _ => (busy, busy.saturating_mul(workers)),
    };
    (each, in_all, options.start_threads.unwrap_or(busy).clamp(1, each))
}

/// Returns the bytes of the largest element that the slab may hold.
fn max_element(options: &MpOptions, slab_bytes: u64) -> Result<u64> {
    let bytes = options.max_element.unwrap_or(slab_bytes / 4);
    if bytes <= slab_bytes / 2 {
        return Ok(bytes);
    }
    Err(Error::config(format!(
        "max_element is {}, and half of the shared memory of {} is {}",
        Bytes(bytes),
        Bytes(slab_bytes),
        Bytes(slab_bytes / 2)
    ))
    .help("raise `ram_budget`, or lower `worker_heap`"))
}

/// Returns the error for a budget that is too small, with the arithmetic and the remedies that would work.
#[cold]
fn too_small(budget_bytes: u64, workers: usize, heap_bytes: u64, needs: Needs) -> Error {
    let needed_bytes = needs.of_workers(workers, heap_bytes).saturating_add(needs.beside_workers());
    let mut ways = vec![format!("raise `ram_budget` to {} or more", Bytes::at_least(needed_bytes))];
    if workers > 1 {
        ways.push("use fewer workers".to_owned());
    }
    let left_bytes = budget_bytes.saturating_sub(needs.beside_workers()).saturating_sub(needs.of_workers(workers, 0));
    let smaller_heap_bytes = left_bytes / workers.max(1) as u64;
    // Workers with less than half of the minimum heap would fail soon.
    if smaller_heap_bytes >= needs.least_heap_bytes / 2 {
        ways.push(format!("set `worker_heap` to {} or less", Bytes::at_most(smaller_heap_bytes)));
    }
    let help = match ways.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{}, or {last}", rest.join(", ")),
        _ => ways.concat(),
    };
    Error::config(format!(
        "ram_budget is {}; {workers} x ({} of heap + {} beside it) + {} of shared memory need {}",
        Bytes(budget_bytes),
        Bytes(heap_bytes),
        Bytes(needs.beside_heap_bytes),
        Bytes(needs.beside_workers()),
        Bytes(needed_bytes),
    ))
    .help(help)
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_parts_never_exceed_the_budget() {
        for workers in [0, 1, 2, 5] {
            for budget in [700, 1000, 2048, 100_000].map(|mib| mib * MIB) {
                let plan = Plan::new(&MpOptions::auto().workers(workers).ram_budget(budget), 8, 0).unwrap();
                assert!(
                    plan.slab_bytes + workers as u64 * (plan.heap_bytes + plan.needs.beside_heap_bytes) <= budget,
                    "{plan:?}"
                );
                assert!(plan.threads_per_worker >= 1 && plan.max_element_bytes <= plan.slab_bytes / 2);
            }
        }
    }

    #[test]
    fn workers_that_come_later_share_what_the_first_had() {
        for budget in [700, 1000, 2048, 100_000].map(|mib| mib * MIB) {
            let options = MpOptions::auto().max_workers(6).ram_budget(budget);
            let plan = Plan::new(&options, 4, 0).unwrap();
            // The number of threads that fit into half of a heap.
            let most = ((plan.solo_heap_bytes / 2 / THREAD) as usize).min(MANY_THREADS);
            assert_eq!(
                (plan.start_workers, plan.active_threads, plan.threads_per_worker, plan.threads_in_all),
                (1, 4, most, most)
            );
            assert!(plan.solo_heap_bytes >= budget / 2 && plan.slab_bytes + plan.pool_bytes <= budget, "{plan:?}");
            for n in 1..=plan.workers {
                assert!(
                    n as u64 * (plan.share(n) + plan.needs.beside_heap_bytes) <= plan.pool_bytes
                        && plan.share(n) >= plan.needs.least_heap_bytes,
                    "{plan:?}"
                );
            }
            assert_eq!(plan.workers_with(0), plan.workers);
            assert_eq!(plan.workers_with(plan.solo_heap_bytes), 1);
            assert_eq!(plan.workers_with(plan.share(2)), 2);
            assert_eq!(Plan::new(&options.clone().workers(2), 4, 0).unwrap().start_workers, 2);
            let given = Plan::new(&options.worker_heap(100 * MIB), 4, 0).unwrap();
            assert_eq!((given.share(1), given.solo_heap_bytes), (100 * MIB, 100 * MIB));
            assert!(given.workers <= 6 && given.slab_bytes + given.pool_bytes <= budget);
        }
    }

    #[test]
    fn workers_keep_half_of_the_slab_at_most_and_each_thread_has_two_extents() {
        for (workers, slab) in [(1, 2), (1, 40), (3, 20), (5, 4000)] {
            let options = MpOptions::auto().workers(workers).worker_heap(64 * MIB);
            let plan = Plan::new(&options.ram_budget((66 * workers as u64 + slab) * MIB), 2, 0).unwrap();
            // Memory for the largest element is reserved for the next element in order.
            let shared = plan.slab_bytes - plan.max_element_bytes;
            let kept = plan.keep() * workers as u64;
            assert!(kept <= shared / 2 && kept + workers as u64 > shared / 2, "{plan:?}");
            for threads in [1, 16, 17, 64] {
                let part = plan.part_bytes(threads) as u64;
                // Two for each thread, and two for elements that are assembled in this process.
                let extents = 2 * (threads.max(FAR_THREADS) as u64 + 1);
                assert!(part <= PART && extents * part <= shared, "{part} bytes for each of {threads} threads");
                assert!(part == PART || extents * (part + 1) > shared, "{part} bytes for each of {threads} threads");
            }
        }
    }

    #[test]
    fn an_element_takes_half_of_the_slab_at_most() {
        let options = || MpOptions::auto().workers(2).worker_heap(64 * MIB).ram_budget((132 + 40) * MIB);
        let largest = |bytes: u64| Plan::new(&options().max_element(bytes), 2, 0).map(|plan| plan.max_element_bytes);
        assert_eq!(Plan::new(&options(), 2, 0).unwrap().max_element_bytes, 10 * MIB);
        assert_eq!(largest(20 * MIB).unwrap(), 20 * MIB);
        let error = largest(20 * MIB + 1).unwrap_err();
        assert!(error.message().ends_with("and half of the shared memory of 40 MiB is 20 MiB"), "{error}");
    }

    #[test]
    fn threads_are_as_many_as_were_asked_for_or_as_tuning_may_find_to_pay() {
        let plan = |options: MpOptions| Plan::new(&options.ram_budget(4096 * MIB), 4, 0).unwrap();
        let threads = |options| {
            Some(plan(options)).map(|plan| (plan.active_threads, plan.threads_per_worker, plan.threads_in_all)).unwrap()
        };
        assert_eq!(threads(MpOptions::auto()), (4, 256, 256));
        assert_eq!(threads(MpOptions::auto().workers(3)), (2, 86, 256));
        assert_eq!(threads(MpOptions::auto().start_threads(9)), (9, 256, 256));
        assert_eq!(threads(MpOptions::auto().worker_heap(64 * MIB)), (4, 16, 16), "no more than its heap has room for");
        let some = MpOptions { start_workers: Some(3), ..MpOptions::auto().max_workers(9).start_threads(1) };
        let plan_of_some = plan(some.clone());
        assert_eq!((plan_of_some.start_workers, plan_of_some.workers, plan_of_some.has_choice()), (3, 9, true));
        assert_eq!(threads(some), (1, 256, 256));
        assert_eq!(threads(MpOptions::auto().tune(false)), (4, 4, 4));
        assert_eq!(threads(MpOptions::auto().threads_per_worker(3).workers(2)), (3, 3, 6));
        assert_eq!(plan(MpOptions::auto().workers(0)).threads_per_worker, 4);
        let far = |options| threads(MpOptions { far: true, ..options });
        assert_eq!(far(MpOptions::auto().workers(2)), (8, 128, 256));
        assert_eq!(far(MpOptions::auto().workers(2).tune(false)), (8, 8, 16));
        assert_eq!(far(MpOptions::auto().threads_per_worker(3)), (3, 3, 3));
        assert_eq!(far(MpOptions::auto().workers(0)), threads(MpOptions::auto().workers(0)));
        let (few, many) = (plan(MpOptions::auto().tune(false)), plan(MpOptions::auto()));
        assert_eq!(few.most_group(), many.most_group(), "batches are stacked where they were");
    }

    #[test]
    fn a_configuration_that_no_worker_could_hold_is_refused_with_what_is_large() {
        let plan = |mib: u64| Plan::new(&MpOptions::auto().workers(2).ram_budget(mib * MIB), 2, 0).unwrap();
        assert!(plan(1024).check_cfg(120 * MIB, None).is_ok());
        let error = plan(1024).check_cfg(121 * MIB, Some("map: f carries 121 MiB")).unwrap_err();
        assert_eq!(
            error.message(),
            "map: f carries 121 MiB to each worker; with a copy of it and 16 MiB for other data, a worker needs \
             258 MiB of heap, but has 256 MiB"
        );
        assert!(error.help_text().unwrap().contains("ram_budget from 1 GiB to 1.02 GiB or more"), "{error}");
        let error = plan(1024).check_cfg(u64::MAX, None).unwrap_err();
        assert!(error.message().starts_with("the pipeline's configuration has"), "{error}");
        // The budget named in the help is sufficient.
        for bytes in [200, 700, 5000] {
            let needed = 4 * (2 * bytes + 16 + 2);
            assert!(plan(needed).check_cfg(bytes * MIB, None).is_ok(), "{bytes}");
        }
    }

    #[test]
    fn too_small_a_budget_says_what_is_needed() {
        let error = Plan::new(&MpOptions::auto().workers(2).ram_budget(100 * MIB), 2, 0).unwrap_err();
        assert_eq!(
            error.message(),
            "ram_budget is 100 MiB; 2 x (64 MiB of heap + 2 MiB beside it) + 1 MiB of shared memory need 133 MiB"
        );
        assert_eq!(
            error.help_text(),
            Some("raise `ram_budget` to 133 MiB or more, use fewer workers, or set `worker_heap` to 47.5 MiB or less")
        );
        let help = |workers, mib, python| {
            let options = MpOptions { interpreted: python, ..MpOptions::auto().workers(workers).ram_budget(mib * MIB) };
            let error = Plan::new(&options, 2, 0).unwrap_err();
            error.help_text().unwrap().to_owned()
        };
        assert_eq!(help(1, 1, false), "raise `ram_budget` to 67 MiB or more");
        let one = "raise `ram_budget` to 267 MiB or more, or set `worker_heap` to 181 MiB or less";
        assert_eq!(help(1, 256, true), one);
        assert_eq!(help(4, 300, true), "raise `ram_budget` to 873 MiB or more, or use fewer workers");
        let options = MpOptions::auto().ram_budget(200 * MIB).max_element(150 * MIB);
        assert!(Plan::new(&options, 2, 0).unwrap_err().message().starts_with("max_element is 150 MiB, and half"));
    }

    #[test]
    fn the_machine_is_asked() {
        assert!(available() > 16 * MIB && total().unwrap() >= available());
    }
}
