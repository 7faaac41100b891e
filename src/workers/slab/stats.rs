//! Figures on the use of a slab.

use serde::Serialize;

/// State of a slab at an instant, and its counters so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SlabStats {
    /// Size of the slab: open pages, closed pages and the reserve.
    pub(crate) capacity_bytes: usize,
    /// Bytes that are granted only on request.
    pub(crate) reserve_bytes: usize,
    /// Bytes that are open to grants now, without the reserve.
    pub(crate) limit_bytes: usize,
    /// Bytes that workers are writing.
    pub(crate) granted_bytes: usize,
    /// Bytes that views hold.
    pub(crate) leased_bytes: usize,
    /// Extents that views hold.
    pub(crate) leases: usize,
    /// Bytes that are free to grant, without the reserve.
    pub(crate) free_bytes: usize,
    /// Length of the longest free run. No larger grant is possible now.
    pub(crate) longest_free_bytes: usize,
    /// Upper bound on the slab's memory while its limit does not change. Budgets count this figure.
    pub(crate) bound_bytes: usize,
    /// Peak of granted and leased bytes together.
    pub(crate) high_water_bytes: usize,
    /// Parts copied to the heap instead of leased.
    pub(crate) copies: u64,
    /// Bytes of the parts copied to the heap.
    pub(crate) copied_bytes: u64,
}
