//! Run logs: a line for each start and resume of a run and for every 1,000 batches, and searches by plans.
//!
//! A stream is a pure function of its pipeline and its position. A log therefore contains positions only. [`which()`]
//! plans the batches after a logged position and finds the records of a batch, and [`when()`] finds the batches of
//! records. [`audit()`] plans the whole run and compares its positions and digests with the log.

mod audit;
mod log;
mod positions;
mod replay;
#[cfg(test)]
mod tests;
mod when;
mod which;
mod writer;

pub use audit::{Audited, audit};
pub use log::{Entry, Event, Line, Run, RunLog};
pub(crate) use when::{Search, search};
pub use when::{Seen, when};
pub use which::{Step, which};
pub(crate) use writer::{Batch, Ledger};
