//! Figures of worker processes: who they are, what they use, what the budget holds.

use serde::{Deserialize, Serialize};

use crate::tune::Decision;

/// Worker processes and their memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersReport {
    /// The RAM budget in bytes: shared memory, and the private memory of all workers.
    pub ram_budget: u64,
    /// Bytes of shared memory.
    pub slab_bytes: u64,
    /// The most of it that was in use at once.
    pub slab_high_water_bytes: u64,
    /// Bytes that came from the workers.
    pub handed_over_bytes: u64,
    /// Parts that had to be copied, because views held all other shared memory.
    pub copies: u64,
    /// Workers that died and were replaced.
    pub replaced: u64,
    /// Threads of each worker.
    pub threads_per_worker: usize,
    /// Ranges of elements that may be under way or ready.
    pub window: usize,
    /// Seconds from the start until the first worker was ready; 0 until then.
    pub started_s: f64,
    /// Of those, what it took to make its pipeline: files opened, tokenizers loaded.
    pub built_s: f64,
    /// Whether the number of threads or workers follows what the consumer needs.
    pub tuned: bool,
    /// Links to the machines that workers run on, where those are others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkReport>,
    /// Answers that other passes had their part in, where the workers are of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolReport>,
    /// Decisions of the tuner, with times and reasons.
    pub decisions: Vec<Decision>,
    /// Workers that run now.
    pub workers: Vec<WorkerReport>,
}

/// What crossed the link to a machine that workers run on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The machine.
    pub host: String,
    /// Bytes of blocks, as they lie in memory.
    pub raw_bytes: u64,
    /// Bytes of these that crossed, packed or as they lie.
    pub wire_bytes: u64,
    /// Blocks that crossed.
    pub blocks: u64,
    /// Of those, the ones that were packed.
    pub packed_blocks: u64,
    /// Bytes a second that the link gave of late, where a block took long enough to measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// Why blocks are packed, or are not.
    pub why: String,
}

/// Answers of workers that several passes lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Answers that came.
    pub answers: u64,
    /// Of those, the ones that had been made for another pass and were kept for a moment.
    pub kept: u64,
}

/// One worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Counted from 0 over the whole run, those that were replaced too.
    pub number: u64,
    /// Its process.
    pub pid: u32,
    /// The machine that it runs on, if that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Seconds of CPU time of all its threads.
    pub cpu_s: f64,
    /// Bytes of anonymous memory in RAM.
    pub heap_bytes: u64,
    /// The limit of its private memory; nothing where it runs on another machine.
    pub heap_limit_bytes: u64,
    /// Tasks that it has done.
    pub tasks: u64,
}
