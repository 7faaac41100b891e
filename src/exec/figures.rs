//! Figures of worker processes: their identity, usage and memory budget.

use serde::{Deserialize, Serialize};

use crate::tune::Decision;

/// Figures of worker processes and their memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersReport {
    /// RAM budget in bytes: shared memory, and the private memory of all workers.
    pub ram_budget: u64,
    /// Bytes of shared memory.
    pub slab_bytes: u64,
    /// Peak bytes of shared memory in use.
    pub slab_high_water_bytes: u64,
    /// Bytes received from the workers.
    pub handed_over_bytes: u64,
    /// Parts that were copied because views held all other shared memory.
    pub copies: u64,
    /// Workers that died and were replaced.
    pub replaced: u64,
    /// Number of threads of each worker.
    pub threads_per_worker: usize,
    /// Maximum number of ranges of elements that are in flight or ready.
    pub window: usize,
    /// Seconds from the start until the first worker was ready; 0 before.
    pub started_s: f64,
    /// Seconds of `started_s` spent on building the worker's pipeline: opening files, loading tokenizers.
    pub built_s: f64,
    /// Whether the number of threads or workers is tuned to the consumer's demand.
    pub tuned: bool,
    /// Links to other machines that workers run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkReport>,
    /// Answers shared with other passes, if the workers belong to a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// Decisions of the tuner, with times and reasons.
    pub decisions: Vec<Decision>,
    /// Workers that are running now.
    pub workers: Vec<WorkerReport>,
}

/// Traffic over the link to a machine that workers run on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Name of the machine.
    pub host: String,
    /// Size of the blocks in memory, in bytes.
    pub raw_bytes: u64,
    /// Bytes sent over the link for these blocks, packed or not.
    pub wire_bytes: u64,
    /// Blocks sent over the link.
    pub blocks: u64,
    /// Blocks that were packed.
    pub packed_blocks: u64,
    /// Recent throughput in bytes per second, if a block took long enough to measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// Reason for packing the blocks, or for not packing them.
    pub why: String,
}

/// Answers of workers that are leased by several passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Answers received.
    pub answers: u64,
    /// Answers that were made for another pass and kept for a moment.
    pub kept: u64,
}

/// Figures of a worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Number of the worker, from 0 over the whole run, including replaced workers.
    pub number: u64,
    /// Process id.
    pub pid: u32,
    /// Name of the machine that the worker runs on, if it is another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// CPU time of all threads, in seconds.
    pub cpu_s: f64,
    /// Bytes of anonymous memory in RAM.
    pub heap_bytes: u64,
    /// Limit of the private memory in bytes; 0 if the worker runs on another machine.
    pub heap_limit_bytes: u64,
    /// Tasks completed.
    pub tasks: u64,
}
