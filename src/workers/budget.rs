//! The RAM budget: who may have how much of it.
//!
//! `budget >= slab + workers x (heap + extra)`, and every term is held by construction: the slab is sealed at its size, the
//! kernel refuses a worker more private memory than its heap.

use super::options::{Count, MpOptions};
use super::slab::PAGE;
use crate::error::{Error, Result};
use crate::report::Bytes;

/// Beside its heap, what a worker has that its limit does not see: relocated pages of the program, the main stack.
const EXTRA: u64 = 2 << 20;
/// A worker cannot do anything with less.
const LEAST_HEAP: u64 = 64 << 20;
/// Room for a few extents.
const LEAST_SLAB: u64 = 16 * PAGE as u64;
/// The slab is never more than this: what lies ready beyond it helps nobody.
const MOST_SLAB: u64 = 4 << 30;

/// What one task should bring at most: more does not travel better.
const PART: u64 = 4 << 20;

/// How the budget is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    /// Of each worker, at most.
    pub(crate) threads: usize,
    /// How many of them work at a time.
    pub(crate) active: usize,
    /// Whether that is tuned.
    pub(crate) tuned: bool,
    pub(crate) budget: u64,
    pub(crate) slab: u64,
    /// Of each worker.
    pub(crate) heap: u64,
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
        let workers = count(options.workers, 1);
        let threads = count(options.threads_per_worker, cores.div_ceil(workers.max(1))).max(1);
        let budget = options.ram_budget.unwrap_or(available / 4);
        let n = workers as u64;
        let spare = budget.saturating_sub(LEAST_SLAB).saturating_sub(n.saturating_mul(EXTRA));
        let heap = options.worker_heap.unwrap_or_else(|| (budget / 2 / n.max(1)).max(LEAST_HEAP));
        let slab = budget.checked_sub(n.saturating_mul(heap.saturating_add(EXTRA))).filter(|&slab| slab >= LEAST_SLAB);
        let Some(slab) = slab else {
            return Err(Error::config(format!(
                "ram_budget is {}; {workers} x ({} of heap + {} beside it) + {} of shared memory need {}",
                Bytes(budget),
                Bytes(heap),
                Bytes(EXTRA),
                Bytes(LEAST_SLAB),
                Bytes(n.saturating_mul(heap.saturating_add(EXTRA)).saturating_add(LEAST_SLAB)),
            ))
            .help(format!(
                "raise ram_budget, use fewer workers, or set worker_heap to {} or less",
                Bytes(spare / n.max(1))
            )));
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
        let active = options.start_threads.unwrap_or(threads).clamp(1, threads);
        Ok(Self { workers, threads, active, tuned: options.tune, budget, slab, heap, max_element })
    }

    /// Bytes of an extent, unless one element takes more: small enough that every thread can have two.
    pub(crate) fn part_bytes(&self) -> usize {
        let threads = (self.workers * self.threads) as u64;
        PART.min((self.slab - self.max_element) / (2 * (1 + threads))) as usize
    }
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

/// What the control groups of either version leave, if they limit at all.
fn cgroup() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let pairs = [
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ];
    pairs.into_iter().filter_map(|(limit, used)| Some(read(limit)?.saturating_sub(read(used)?))).min()
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
                assert!(plan.slab + workers as u64 * (plan.heap + EXTRA) <= budget, "{plan:?}");
                assert!(plan.threads >= 1 && plan.max_element <= plan.slab / 2);
            }
        }
    }

    #[test]
    fn too_small_a_budget_says_what_is_needed() {
        let error = Plan::new(&MpOptions::auto().workers(2).ram_budget(100 * MIB), 2, 0).unwrap_err();
        assert_eq!(
            error.message(),
            "ram_budget is 100 MiB; 2 x (64 MiB of heap + 2 MiB beside it) + 1 MiB of shared memory need 133 MiB"
        );
        let options = MpOptions::auto().ram_budget(200 * MIB).max_element(150 * MIB);
        assert!(Plan::new(&options, 2, 0).unwrap_err().message().starts_with("max_element is 150 MiB, and half"));
    }

    #[test]
    fn the_machine_is_asked() {
        assert!(available() > 16 * MIB);
        assert_eq!(meminfo("MemFree: 1 kB\nMemAvailable:     24 kB\n", "MemAvailable:"), Some(24 * 1024));
    }
}
