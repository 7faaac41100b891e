//! Shared memory that the parent alone hands out: extents of sealed memory files, held by leases.
//!
//! ```text
//!             Slab::grant           the worker               Grant::into_lease         the last view goes
//! free pages ─────────────▶ Grant ── writes, says it is done ────────────────▶ Lease ─────────────────────▶ free pages
//! ```
//!
//! The tables lie in the parent's private memory: a worker that dies, in whatever way, can have spoilt only the extents
//! that were granted to it, and those are not read unless it said that it was done. Each worker has a memory file of its
//! own, so that it cannot reach what others write.

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
