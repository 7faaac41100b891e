//! Machinery behind the stages: how elements in front of a border are evaluated, by whom, and in which portions.
//!
//! A pass over an elementwise prefix asks for ranges of indices ([`chunks`]) ahead of need; an `evaluator` has them evaluated by
//! threads of this process, or by other processes (`remote` in this one, `serve` in those); what comes back is read in the order of the indices, and
//! bad records are passed over or not ([`prefix`]).

pub(crate) mod ahead;
pub(crate) mod chunks;
pub(crate) mod collect;
pub(crate) mod evaluate;
mod evaluator;
pub(crate) mod foresight;
pub(crate) mod opaque;
pub(crate) mod pace;
pub(crate) mod prefix;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub(in crate::dataset) mod remote;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod serve;
pub(crate) mod siblings;
pub(crate) mod skipping;
pub(crate) mod thresholds;
pub(crate) mod upcoming;
