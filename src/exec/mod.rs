//! Executors, which evaluate a pipeline. No executor changes a byte of the elements.

mod demand;
mod failed;
mod figures;
mod plans_only;
mod pool;
pub(crate) mod remote;
mod runtime;
pub(crate) mod thread;
mod tuning;

pub use failed::FailedElements;
pub use figures::{LinkReport, PoolReport, WorkerReport, WorkersReport};
pub use runtime::{Executor, Runtime};

pub(crate) use demand::Demand;
pub(crate) use failed::Failed;
pub(crate) use plans_only::PlansOnly;
pub(crate) use pool::{MOST_THREADS, Pool};
pub(crate) use runtime::Engine;
