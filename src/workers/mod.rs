//! Worker processes that evaluate the elementwise part of a pipeline outside the trainer's process, under a RAM budget.
//!
//! [`mp_prefetch`] takes a function that builds the pipeline. The program is started again as a worker, which builds an
//! identical pipeline and evaluates ranges of root indices. Elements come back without a copy, through sealed shared
//! memory with a piece for each worker.
//!
//! The output, including its order, equals the inline run of the pipeline byte for byte, for any number of workers and
//! any failures. A worker that dies in any way is replaced, and its unfinished work is repeated.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::{Result, prelude::*};
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
//! # Elements and functions that may cross
//! Elements that cross are [`Element`](crate::Element)s, numbers, text, vectors and pairs of these, and custom types
//! registered with [`crosses`]; other types are an error of `build`. The function's only input is its argument, which
//! travels as JSON. Stateful stages run in this process, on one thread.
//!
//! A function that captures variables does not compile, because a worker would not have the variables:
//! ```compile_fail,E0308
//! # use gristmill::{dataset::map::Range, workers::{MpOptions, mp_prefetch}, prelude::*};
//! let scale = 3;
//! let pipeline = |len: i64| Ok(Range::new(0, len).map(move |x| x * scale).to_iter());
//! mp_prefetch(pipeline, 42, MpOptions::default())?;
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! Streams without random access, such as compressed files, are read in this process. Later functions of single
//! elements (`map`, `filter`, `random_map`, …) run in workers: this process sends them chunks of elements. A function
//! runs in this process if it takes less than 20 µs or its elements cannot cross.
//!
//! Streams read as [`lanes`](crate::dataset::iter::lanes()) are read by workers. Different workers read different
//! lanes, including all stages inside the lanes, even stateful stages. A worker keeps a lane open after reading from
//! it. If the worker dies, other workers reopen its lanes from a state that is at most 63 elements old.

mod borders;
mod budget;
mod channel;
pub(crate) mod control;
// Engine drivers are written in Python.
#[cfg(any(feature = "python", test))]
pub(crate) mod far;
pub(crate) mod launch;
pub(crate) mod options;
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

pub(crate) use sys::process::end_with_parent;
