//! Run logs: a line for each start and resume of a run and for every 1,000 batches.
//!
//! A stream is a pure function of its pipeline and its position. A log therefore contains positions only.

mod log;
mod writer;

pub use log::{Entry, Event, Line, Run, RunLog};
pub(crate) use writer::{Batch, Ledger};
