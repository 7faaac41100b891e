//! Worker processes in the report: who they are, what they use, what the budget holds.

use serde::Serialize;

use super::format::{bytes, time};
use crate::tune::Decision;

/// Worker processes and their memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
    /// What was tuned, when and why.
    pub decisions: Vec<Decision>,
    /// Those that run now.
    pub workers: Vec<WorkerReport>,
}

/// One worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerReport {
    /// Counted from 0 over the whole run, those that were replaced too.
    pub number: u64,
    /// Its process.
    pub pid: u32,
    /// Seconds of CPU time of all its threads.
    pub cpu_s: f64,
    /// Bytes of anonymous memory in RAM.
    pub heap_bytes: u64,
    /// The limit of its private memory.
    pub heap_limit_bytes: u64,
    /// Tasks that it has done.
    pub tasks: u64,
}

impl WorkersReport {
    /// What is known of the time before the first element.
    pub(super) fn startup(&self) -> Option<String> {
        let time = |seconds: f64| time(seconds * 1e6);
        (self.started_s > 0.0).then(|| {
            format!(
                "the first worker was ready after {}, {} of it to make its pipeline",
                time(self.started_s),
                time(self.built_s)
            )
        })
    }

    /// The lines of the report's text, with how long the run took.
    pub(super) fn lines(&self, wall_s: f64) -> Vec<String> {
        let per_s = if wall_s > 0.0 { self.handed_over_bytes as f64 / wall_s } else { 0.0 };
        // On one line, as it is looked for.
        let copies = format!(" · {} parts copied", self.copies).replace(' ', "\u{a0}");
        let copies = if self.copies > 0 { copies } else { String::new() };
        let size = |n: u64| bytes(n as f64);
        let mut lines = vec![format!(
            "budget {} · shared {} ({} used at most) · handed over {}/s{copies} · {} replaced",
            size(self.ram_budget),
            size(self.slab_bytes),
            size(self.slab_high_water_bytes),
            bytes(per_s),
            self.replaced
        )];
        lines.extend(self.workers.iter().map(|worker| {
            format!(
                "worker {} (pid {}): CPU {:.1} s · heap {} of {} · {} tasks",
                worker.number,
                worker.pid,
                worker.cpu_s,
                size(worker.heap_bytes),
                size(worker.heap_limit_bytes),
                worker.tasks
            )
        }));
        let decisions = self.decisions.iter().rev().take(5).rev();
        lines.extend(decisions.map(|decision| format!("tuned at {decision}")));
        lines
    }
}
