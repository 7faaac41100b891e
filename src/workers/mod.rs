//! Worker processes: a pipeline's elementwise part, run outside the trainer's process under a RAM budget.
//!
//! [`mp_prefetch`] takes a function that makes the pipeline. The same program is started again as a worker, which makes the
//! same pipeline; ranges of root indices are evaluated there, and the elements come back through sealed shared
//! memory, a piece for each worker, without a copy. The order is that of the same pipeline run inline, byte for byte, however
//! many workers there are and whatever happens to them: a worker that dies in any way is replaced, and what it had begun is
//! done again.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::{IterDataset, MapDataset, Result};
//! use gristmill::workers::{MpOptions, mp_prefetch};
//!
//! fn pipeline(seed: u32) -> Result<impl IterDataset<Item = Vec<i64>>> {
//!     Ok(Range::new(0, 1000).seed(seed).shuffle(None).map(|x| x * x).to_iter().batch(32))
//! }
//!
//! let workers = MpOptions::auto().ram_budget(256 << 20);
//! let batches = mp_prefetch(pipeline, 42, workers)?.build()?.collect::<Result<Vec<_>>>()?;
//! assert_eq!(batches, pipeline(42)?.collect()?);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # What may go where
//! Elements that cross are [`Element`](crate::Element)s, numbers, text, and vectors and pairs of those, and types of your own that
//! [`crosses`] is told of; others are an error of `build`. The function takes nothing but its argument along, which travels as JSON.
//! Stateful stages run in this process, on one thread.
//!
//! A function that captures something does not compile, as a worker would not have it:
//! ```compile_fail,E0308
//! # use gristmill::{IterDataset, MapDataset, dataset::map::Range, workers::{MpOptions, mp_prefetch}};
//! let scale = 3;
//! let pipeline = |len: i64| Ok(Range::new(0, len).map(move |x| x * scale).to_iter());
//! mp_prefetch(pipeline, 42, MpOptions::default())?;
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! Streams without random access, such as compressed files, are read in this process. Functions of single elements after them
//! (`map`, `filter`, `random_map`, …) are applied by workers: this process sends them chunks of elements. A function that takes less than
//! 20 µs, or whose elements cannot cross, is applied here.
//!
//! Streams that are read as [`lanes`](crate::dataset::iter::lanes()) are read by workers: different workers read different lanes, with all
//! stages that are inside them, stateful ones too. A worker keeps the lanes open that it has read; when it dies, others open them where they were, from a state
//! at most 63 elements old.

mod borders;
mod budget;
mod channel;
pub(crate) mod control;
// Drivers of engines are written in Python.
#[cfg(any(feature = "python", test))]
pub(crate) mod far;
pub(crate) mod launch;
mod options;
mod pick;
mod pool;
mod prefetch;
mod processes;
mod serve;
mod slab;
pub(crate) mod start;
pub(crate) mod sys;

pub use launch::{init, set_worker_command};
pub use options::{Count, MpOptions, Poison};
pub use pick::{Measured, PerformanceConfig, PickLimits, pick_performance_config};
pub use prefetch::mp_prefetch;

pub use crate::wire::crosses;

#[cfg(feature = "python")]
pub(crate) use sys::process::end_with_parent;
