//! The lock, which the model tests replace by one of which they know every interleaving.

#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard};
