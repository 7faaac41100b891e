//! Executors: who evaluates a pipeline. None of them changes a byte of it.

mod pool;
mod runtime;

pub use runtime::{Executor, Runtime};

pub(crate) use pool::Pool;
