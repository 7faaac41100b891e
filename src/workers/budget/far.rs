//! Budget of this machine's memory for workers on other machines.

use super::{LEAST_SLAB, Needs, Plan};
use crate::error::{Error, Result};
use crate::units::Bytes;
use crate::workers::options::Elsewhere;
use crate::workers::slab::PAGE;

impl Plan {
    /// Divides `budget_bytes` of this machine among blocks in transfer; remote workers' memory is not counted. The pair
    /// is the initial and the maximum number of workers.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the budget is too small.
    pub(crate) fn far(
        (start_workers, workers): (usize, usize),
        threads: usize,
        budget_bytes: u64,
        elsewhere: Elsewhere,
    ) -> Result<Self> {
        let block_bytes = elsewhere.block_bytes;
        let least = LEAST_SLAB.max(4 * block_bytes);
        if budget_bytes < least {
            let (budget, block, least) = (Bytes(budget_bytes), Bytes(block_bytes), Bytes(least));
            return Err(Error::config(format!("ram_budget is {budget}, but blocks of {block} need {least}"))
                .help("raise `ram_budget`, or make blocks smaller"));
        }
        let slab_bytes = budget_bytes / PAGE as u64 * PAGE as u64;
        // A nominal cap of 1 byte per worker, which is not enforced, and room for the maximum number of workers.
        let needs = Needs { beside_heap_bytes: 0, least_heap_bytes: 0, loaded_bytes: 0, forker_bytes: 0 };
        Ok(Self {
            workers,
            start_workers,
            cores: threads * workers,
            threads_per_worker: threads,
            threads_in_all: threads * workers,
            active_threads: threads,
            tuned: workers > start_workers,
            budget_bytes,
            slab_bytes,
            pool_bytes: workers as u64,
            needs,
            heap_bytes: 1,
            solo_heap_bytes: 1,
            max_element_bytes: slab_bytes / 4,
            elsewhere: Some(elsewhere),
        })
    }
}
