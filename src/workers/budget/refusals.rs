//! Errors about budgets that are too small, with the arithmetic and the remedies.

use super::{Needs, Plan};
use crate::error::{Error, Result};
use crate::units::Bytes;

/// Returns the `bytes` of the largest element, if the slab may hold such an element.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if an element has more than half of the slab.
pub(super) fn fitting(bytes: u64, slab_bytes: u64) -> Result<u64> {
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
pub(super) fn too_small(budget_bytes: u64, workers: usize, heap_bytes: u64, needs: Needs) -> Error {
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

impl Plan {
    /// Returns the error for a configuration of `bytes` that needs `needed` bytes of a heap of `heap` bytes.
    #[cold]
    pub(super) fn too_large(&self, bytes: u64, needed: u64, heap: u64, largest: Option<&str>) -> Error {
        let what = largest.map_or_else(
            || format!("the pipeline's configuration has {}", Bytes(bytes)),
            |largest| format!("{largest} to each worker"),
        );
        // As in `new`: half of the budget is for heaps.
        let budget = needed.saturating_add(self.needs.beside_heap_bytes).saturating_mul(2 * self.start_workers as u64);
        Error::config(format!(
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
        ))
    }
}
