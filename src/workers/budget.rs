//! The RAM budget: who may have how much of it.
//!
//! `budget >= slab + workers x (heap + extra)`, and every term is held by construction: the slab has one size, each of its
//! pages has memory in one worker's file at most, and the kernel refuses a worker more private memory than its heap.
//!
//! What workers do not need of their part does not go to the slab. Views keep memory of the slab for as long as they
//! like, so it could not be had back for an element that needs a large heap after all; workers can be sent home. So
//! their part stays one pool: shared by as many as pay, or all of it for one that is by itself.

use super::options::{Count, MpOptions};
use super::slab::PAGE;
use crate::error::{Error, Result};
use crate::units::Bytes;

/// Memory that a worker needs, by what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Beside its heap, what it has that its limit does not see: relocated pages of the program, the main stack.
    pub(crate) extra: u64,
    /// It cannot do anything with a smaller heap.
    least_heap: u64,
    /// Bytes of its heap that are taken once the pipeline is loaded.
    loaded: u64,
    /// Bytes that all of them need once: a process that forks them.
    once: u64,
}

impl Needs {
    const RUST: Self = Self { extra: 2 << 20, least_heap: 64 << 20, loaded: 16 << 20, once: 0 };
    /// An interpreter, and libraries such as NumPy.
    const PYTHON: Self = Self { extra: 10 << 20, least_heap: 192 << 20, loaded: 128 << 20, once: 64 << 20 };
}

/// Room for a few extents.
const LEAST_SLAB: u64 = 16 * PAGE as u64;
/// The slab is never more than this: what lies ready beyond it helps nobody.
const MOST_SLAB: u64 = 4 << 30;

/// Bytes that one task should bring at most: more does not travel better.
const PART: u64 = 4 << 20;

/// Threads that a worker begins with where nobody says how many and elements come from far away.
const FAR_THREADS: usize = 16;
/// It may come to as many, if elements mostly wait for something, and its heap holds them.
const MANY_THREADS: usize = 64;
/// Bytes that a thread takes of a heap: its stack, and memory that the allocator keeps for it. Half of a heap is for threads.
const THREAD: u64 = 4 << 20;

/// The budget, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Most that there may be.
    pub(crate) workers: usize,
    /// Workers at the start.
    pub(crate) start_workers: usize,
    /// Of the machine.
    pub(crate) cores: usize,
    /// Of each worker, at most.
    pub(crate) threads: usize,
    /// Of all workers together, at most.
    pub(crate) most_threads: usize,
    /// Threads of each worker that work at a time.
    pub(crate) active: usize,
    /// Whether that is tuned.
    pub(crate) tuned: bool,
    pub(crate) budget: u64,
    pub(crate) slab: u64,
    /// Of all workers, with what they have beside their heaps.
    pub(crate) pool: u64,
    pub(crate) needs: Needs,
    /// Of each worker, if there are as many as may be.
    pub(crate) heap: u64,
    /// Of one that is by itself.
    pub(crate) widest: u64,
    /// The largest element, and the part of the slab that is kept for the head of the line.
    pub(crate) max_element: u64,
}

impl Plan {
    /// Divides the budget of `options` on a machine with `cores` and `available` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the arithmetic, if it is too small.
    pub(crate) fn new(options: &MpOptions, cores: usize, available: u64) -> Result<Self> {
        let count = |count, auto| if let Count::Fixed(n) = count { n } else { auto };
        let budget = options.ram_budget.unwrap_or(available / 4);
        let needs = if options.interpreted { Needs::PYTHON } else { Needs::RUST };
        let Needs { extra, least_heap, once, .. } = needs;
        let workers = match (options.workers, options.worker_heap) {
            (Count::Fixed(n), _) => n,
            (Count::Auto, _) if !options.tune => 1,
            (Count::Auto, None) => options.max_workers.min(most_that_fit(budget / 2, needs, least_heap)),
            (Count::Auto, Some(heap)) => options.max_workers.min(most_that_fit(budget / 2, needs, heap)),
        };
        let start_workers = match options.workers {
            Count::Auto => workers.min(options.start_workers.unwrap_or(1)),
            Count::Fixed(n) => n,
        };
        // As many as keep the cores busy, if elements are work; more if they come from far away, or tuning finds that they wait.
        let least = if options.far && workers > 0 { cores.max(FAR_THREADS) } else { cores };
        let busy = count(options.threads_per_worker, least.div_ceil(start_workers.max(1))).max(1);
        let n = workers as u64;
        let spare = budget.saturating_sub(LEAST_SLAB.saturating_add(once)).saturating_sub(n.saturating_mul(extra));
        let heap = options.worker_heap.unwrap_or_else(|| (budget / 2 / n.max(1)).max(least_heap));
        let pool = n.saturating_mul(heap.saturating_add(extra));
        let widest = if options.worker_heap.is_some() { heap } else { pool.saturating_sub(extra).max(heap) };
        let (threads, most_threads) = match options.threads_per_worker {
            Count::Auto if options.tune && workers > 0 => {
                let fit = usize::try_from(widest / 2 / THREAD).unwrap_or(MANY_THREADS);
                let most = cores.max(workers).max(busy * start_workers).max(fit.clamp(FAR_THREADS, MANY_THREADS));
                (if start_workers == workers { most.div_ceil(workers) } else { most }, most)
            }
            _ => (busy, busy.saturating_mul(workers)),
        };
        let slab = budget.checked_sub(pool.saturating_add(once)).filter(|&slab| slab >= LEAST_SLAB);
        let Some(slab) = slab else {
            return Err(Error::config(format!(
                "ram_budget is {}; {workers} x ({} of heap + {} beside it) + {} of shared memory need {}",
                Bytes(budget),
                Bytes(heap),
                Bytes(extra),
                Bytes(LEAST_SLAB + once),
                Bytes(pool.saturating_add(LEAST_SLAB + once)),
            ))
            .help(remedies(workers, pool.saturating_add(LEAST_SLAB + once), spare / n.max(1), needs)));
        };
        let slab = slab.min(MOST_SLAB) / PAGE as u64 * PAGE as u64;
        let max_element = options.max_element.unwrap_or(slab / 4);
        if max_element > slab / 2 {
            return Err(Error::config(format!(
                "max_element is {}, and half of the shared memory of {} is {}",
                Bytes(max_element),
                Bytes(slab),
                Bytes(slab / 2)
            ))
            .help("raise ram_budget, or lower worker_heap"));
        }
        let active = options.start_threads.unwrap_or(busy).clamp(1, threads);
        let tuned = options.tune;
        Ok(Self {
            workers,
            start_workers,
            cores,
            threads,
            most_threads,
            active,
            tuned,
            budget,
            slab,
            pool,
            needs,
            heap,
            widest,
            max_element,
        })
    }

    /// Checks that each of the first workers has room for a configuration of `bytes`: as it came, and as what is made of it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the arithmetic, and what is the `largest` of it.
    pub(crate) fn check_cfg(&self, bytes: u64, largest: Option<&str>) -> Result<()> {
        let heap = self.share(self.start_workers);
        let needed = bytes.saturating_mul(2).saturating_add(self.needs.loaded);
        if needed <= heap {
            return Ok(());
        }
        let what = largest.map_or_else(
            || format!("the pipeline's configuration has {}", Bytes(bytes)),
            |largest| format!("{largest} to each worker"),
        );
        // As `new` divides it: half of the budget is for heaps.
        let budget = needed.saturating_add(self.needs.extra).saturating_mul(2 * self.start_workers as u64);
        Err(Error::config(format!(
            "{what}; with the copy that is made of it and {} of its own a worker needs {} of heap, and has {}",
            Bytes(self.needs.loaded),
            Bytes(needed),
            Bytes(heap)
        ))
        .help(format!(
            "open large data inside the function, once in each worker, by its path (or in worker_init_fn); or raise \
             ram_budget from {} to {} or more, or set worker_heap, or use fewer workers",
            Bytes(self.budget),
            Bytes::at_least(budget)
        )))
    }

    /// The heap of each of so many workers.
    pub(crate) fn share(&self, workers: usize) -> u64 {
        if self.start_workers == self.workers {
            return self.heap;
        }
        (self.pool / workers.max(1) as u64).saturating_sub(self.needs.extra).min(self.widest).max(self.heap)
    }

    /// Counts the workers that can have a heap of `least` bytes each: one in any case.
    pub(crate) fn workers_with(&self, least: u64) -> usize {
        if self.start_workers == self.workers {
            return self.workers;
        }
        (1..=self.workers).rev().find(|&n| self.share(n) >= least.max(self.needs.least_heap)).unwrap_or(1)
    }

    /// Bytes of an extent, unless one element takes more: small enough that each of so many threads can have two.
    pub(crate) fn part_bytes(&self, threads: usize) -> usize {
        PART.min((self.slab - self.max_element) / (2 * (1 + threads.max(FAR_THREADS) as u64))) as usize
    }

    /// Bytes of the slab that a worker may keep, for arrays that functions in it keep: all workers together no more than half of
    /// what is not for the head of the line.
    pub(crate) fn keep(&self) -> u64 {
        (self.slab - self.max_element) / 2 / self.workers.max(1) as u64
    }

    /// Whether there is a number of threads or workers to be found.
    pub(crate) fn has_choice(&self) -> bool {
        self.tuned && (self.threads > self.active || self.workers > self.start_workers)
    }

    /// Bytes of the largest group that comes as one: every thread that has a core can be at one, and none is larger than an
    /// element may be.
    pub(crate) fn most_group(&self) -> u64 {
        let threads = self.most_threads.min(self.cores.max(self.start_workers));
        ((self.slab - self.max_element) / (1 + threads as u64)).min(self.max_element)
    }
}

/// Names the ways out of a budget that is too small, of those that lead somewhere.
fn remedies(workers: usize, need: u64, heap: u64, needs: Needs) -> String {
    let mut ways = vec![format!("raise ram_budget (`--ram`) to {} or more", Bytes::at_least(need))];
    if workers > 1 {
        ways.push("use fewer workers".to_owned());
    }
    // With less than half of what workers have at least, none would come far.
    if heap >= needs.least_heap / 2 {
        ways.push(format!("set worker_heap to {} or less", Bytes::at_most(heap)));
    }
    match ways.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{}, or {last}", rest.join(", ")),
        _ => ways.concat(),
    }
}

/// Workers with a heap of so many bytes that fit in `bytes`: one in any case.
fn most_that_fit(bytes: u64, needs: Needs, heap: u64) -> usize {
    usize::try_from(bytes / heap.saturating_add(needs.extra)).unwrap_or(usize::MAX).max(1)
}

/// All memory of this machine, or of this control group.
pub(crate) fn total() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text, "MemTotal:"));
    machine.into_iter().chain(GROUPS.iter().filter_map(|(limit, _)| read(limit))).min()
}

/// Memory that can be had without pushing others out, in this control group.
pub(crate) fn available() -> u64 {
    let free = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text, "MemAvailable:"));
    free.into_iter().chain(cgroup()).min().unwrap_or(4 << 30)
}

fn meminfo(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Bytes that the control groups of either version leave, if they limit at all.
fn cgroup() -> Option<u64> {
    GROUPS.iter().filter_map(|(limit, used)| Some(read(limit)?.saturating_sub(read(used)?))).min()
}

/// Files in which control groups of either version say what they may use, and what they do.
const GROUPS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
];

fn read(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
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
                assert!(plan.slab + workers as u64 * (plan.heap + plan.needs.extra) <= budget, "{plan:?}");
                assert!(plan.threads >= 1 && plan.max_element <= plan.slab / 2);
            }
        }
    }

    #[test]
    fn workers_that_come_later_share_what_the_first_had() {
        for budget in [700, 1000, 2048, 100_000].map(|mib| mib * MIB) {
            let options = MpOptions::auto().max_workers(6).ram_budget(budget);
            let plan = Plan::new(&options, 4, 0).unwrap();
            // As many as half of a heap has room for.
            let most = ((plan.widest / 2 / THREAD) as usize).min(64);
            assert_eq!((plan.start_workers, plan.active, plan.threads, plan.most_threads), (1, 4, most, most));
            assert!(plan.widest >= budget / 2 && plan.slab + plan.pool <= budget, "{plan:?}");
            for n in 1..=plan.workers {
                assert!(
                    n as u64 * (plan.share(n) + plan.needs.extra) <= plan.pool
                        && plan.share(n) >= plan.needs.least_heap,
                    "{plan:?}"
                );
            }
            assert_eq!(plan.workers_with(0), plan.workers);
            assert_eq!(plan.workers_with(plan.widest), 1);
            assert_eq!(plan.workers_with(plan.share(2)), 2);
            assert_eq!(Plan::new(&options.clone().workers(2), 4, 0).unwrap().start_workers, 2);
            let given = Plan::new(&options.worker_heap(100 * MIB), 4, 0).unwrap();
            assert_eq!((given.share(1), given.widest), (100 * MIB, 100 * MIB));
            assert!(given.workers <= 6 && given.slab + given.pool <= budget);
        }
    }

    #[test]
    fn threads_are_as_many_as_were_asked_for_or_as_tuning_may_find_to_pay() {
        let plan = |options: MpOptions| Plan::new(&options.ram_budget(4096 * MIB), 4, 0).unwrap();
        let threads = |options| Some(plan(options)).map(|plan| (plan.active, plan.threads, plan.most_threads)).unwrap();
        assert_eq!(threads(MpOptions::auto()), (4, 64, 64));
        assert_eq!(threads(MpOptions::auto().workers(3)), (2, 22, 64));
        assert_eq!(threads(MpOptions::auto().start_threads(9)), (9, 64, 64));
        assert_eq!(threads(MpOptions::auto().worker_heap(64 * MIB)), (4, 16, 16), "no more than its heap has room for");
        let some = MpOptions { start_workers: Some(3), ..MpOptions::auto().max_workers(9).start_threads(1) };
        let plan_of_some = plan(some.clone());
        assert_eq!((plan_of_some.start_workers, plan_of_some.workers, plan_of_some.has_choice()), (3, 9, true));
        assert_eq!(threads(some), (1, 64, 64));
        assert_eq!(threads(MpOptions::auto().tune(false)), (4, 4, 4));
        assert_eq!(threads(MpOptions::auto().threads_per_worker(3).workers(2)), (3, 3, 6));
        assert_eq!(plan(MpOptions::auto().workers(0)).threads, 4);
        let far = |options| threads(MpOptions { far: true, ..options });
        assert_eq!(far(MpOptions::auto().workers(2)), (8, 32, 64));
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
            "map: f carries 121 MiB to each worker; with the copy that is made of it and 16 MiB of its own a worker needs \
             258 MiB of heap, and has 256 MiB"
        );
        assert!(error.help_text().unwrap().contains("ram_budget from 1 GiB to 1.02 GiB or more"), "{error}");
        let error = plan(1024).check_cfg(u64::MAX, None).unwrap_err();
        assert!(error.message().starts_with("the pipeline's configuration has"), "{error}");
        // What the help says suffices.
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
            Some(
                "raise ram_budget (`--ram`) to 133 MiB or more, use fewer workers, or set worker_heap to 47.5 MiB or less"
            )
        );
        let help = |workers, mib, python| {
            let options = MpOptions { interpreted: python, ..MpOptions::auto().workers(workers).ram_budget(mib * MIB) };
            let error = Plan::new(&options, 2, 0).unwrap_err();
            error.help_text().unwrap().to_owned()
        };
        assert_eq!(help(1, 1, false), "raise ram_budget (`--ram`) to 67 MiB or more");
        let one = "raise ram_budget (`--ram`) to 267 MiB or more, or set worker_heap to 181 MiB or less";
        assert_eq!(help(1, 256, true), one);
        assert_eq!(help(4, 300, true), "raise ram_budget (`--ram`) to 873 MiB or more, or use fewer workers");
        let options = MpOptions::auto().ram_budget(200 * MIB).max_element(150 * MIB);
        assert!(Plan::new(&options, 2, 0).unwrap_err().message().starts_with("max_element is 150 MiB, and half"));
    }

    #[test]
    fn the_machine_is_asked() {
        assert!(available() > 16 * MIB && total().unwrap() >= available());
        assert_eq!(meminfo("MemFree: 1 kB\nMemAvailable:     24 kB\n", "MemAvailable:"), Some(24 * 1024));
    }
}
