//! Budgets that leave little shared memory.

use gristmill::workers::MpOptions;

const MIB: u64 = 1 << 20;

/// One worker or two, and shared memory of so many MiB, down to the least there may be.
pub(crate) fn tight() -> impl Iterator<Item = (u64, usize, MpOptions)> {
    [2, 5, 40].into_iter().flat_map(|slab_mib| [1, 2].map(|workers| (slab_mib, workers))).map(|(slab_mib, workers)| {
        let options = MpOptions::auto().workers(workers).threads_per_worker(2).worker_heap(64 * MIB);
        // Beside its heap, a worker counts for 2 MiB.
        (slab_mib, workers, options.ram_budget((workers as u64 * 66 + slab_mib) * MIB))
    })
}
