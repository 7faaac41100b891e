//! Worker processes: a pipeline's elementwise part, run outside the trainer's process under a RAM budget.
//!
//! Elements come back through one shared-memory [slab](slab); only positions travel as messages. The order of the stream
//! is that of the same pipeline run inline, whatever happens to the workers.

mod control;
mod launch;
mod slab;
mod sys;
mod wire;

pub use launch::{init, set_worker_command};
/// What a worker may send, on bytes in memory: what `fuzz/` runs. Only in builds with `--cfg fuzzing`.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// A chunk of elements. No bytes may make it panic, hang or take much more memory than it is given.
    pub fn wire(data: &[u8]) {
        super::wire::fuzz_wire(data);
    }
}
