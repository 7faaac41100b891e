//! Workers on other machines, which an external engine starts, reaches and ends.
//!
//! The engine is driven from outside: a *driver* takes [orders](Order) through a [`Driver`], such as "start worker 3",
//! and reports the outcomes there. Messages are the messages of local worker processes. The result of a task arrives
//! beside its answer as one block, and is read in the engine's memory. If the [link](links) is slow, the block is
//! packed, and unpacked in this process. A worker is an [`Evaluator`], which answers messages.

mod blocks;
mod cache;
mod carrier;
mod choice;
mod credits;
mod evaluator;
mod exchange;
mod launch;
mod links;
mod messages;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod pool_tests;
mod pooled;
mod semaphore;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;

pub(crate) use carrier::Blame;
pub(crate) use evaluator::Evaluator;
#[cfg(test)]
pub(crate) use exchange::exchange;
pub(crate) use exchange::{Driver, Order, exchange_with};
pub(crate) use launch::{FarLaunch, FarOptions};
pub(crate) use links::{Compress, LinkOptions};
pub(crate) use pooled::Pooled;
