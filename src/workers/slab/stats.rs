//! Figures of how much of a slab is in use.

use serde::Serialize;

/// The state of a slab at one instant, and what was counted until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct SlabStats {
    /// All of it: what is grantable, what is closed, the reserve.
    pub(crate) capacity_bytes: usize,
    /// Bytes that are granted only on request.
    pub(crate) reserve_bytes: usize,
    /// Bytes that may be granted now, beside the reserve.
    pub(crate) limit_bytes: usize,
    /// Being written by workers.
    pub(crate) granted_bytes: usize,
    /// Held by views.
    pub(crate) leased_bytes: usize,
    /// Extents held by views.
    pub(crate) leases: usize,
    /// Free to be granted, the reserve apart.
    pub(crate) free_bytes: usize,
    /// The longest free run among them: no larger grant is possible now.
    pub(crate) longest_free_bytes: usize,
    /// The most memory that the slab can take up while its limit stays: what a budget counts.
    pub(crate) bound_bytes: usize,
    /// The most that was ever granted and leased at once.
    pub(crate) high_water_bytes: usize,
    /// Parts copied to the heap instead of leased.
    pub(crate) copies: u64,
    /// Bytes copied so.
    pub(crate) copied_bytes: u64,
}
