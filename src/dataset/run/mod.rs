//! Evaluation of the elements before a border.
//!
//! A pass over an elementwise prefix dispatches ranges of indices ([`chunks`]) ahead of demand. An `evaluator`
//! evaluates them on threads of this process or in worker processes (`remote` in this process, `serve` in the workers).
//! The pass reads the results in index order, and skips bad records if configured ([`prefix`]).

pub(crate) mod ahead;
pub(crate) mod chunks;
pub(crate) mod collect;
pub(crate) mod evaluate;
mod evaluator;
pub(in crate::dataset) mod excluding;
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
