//! Shared memory that only the parent allocates: extents of sealed memory files, held by leases.
//!
//! ```text
//!             Slab::grant           the worker               Grant::into_lease         the last view goes
//! free pages ─────────────▶ Grant ── writes, says it is done ────────────────▶ Lease ─────────────────────▶ free pages
//! ```
//!
//! The tables are in the parent's private memory. A worker that dies can have damaged only the extents granted to it.
//! The parent reads those extents only after the worker's message that it is done. Each worker has a separate memory
//! file, so it cannot reach the output of other workers.

mod areas;
mod error;
mod extents;
#[cfg(test)]
mod heap;
mod lease;
#[cfg(all(test, loom))]
mod loom_model;
mod memory;
mod parent;
mod runs;
mod stats;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod worker;

#[cfg(all(test, not(loom)))]
pub(crate) use error::SlabError;
pub(crate) use extents::{ExtentId, PAGE};
pub(crate) use lease::Grant;
#[cfg(all(test, not(loom)))]
pub(crate) use lease::{Lease, Refused};
pub(crate) use parent::{Slab, Spoilt};
#[cfg(all(test, not(loom)))]
pub(crate) use stats::SlabStats;
pub(crate) use worker::{ExtentMut, WorkerSlab};
