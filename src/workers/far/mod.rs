//! Workers on other machines, which somebody else's engine starts, reaches and ends.
//!
//! The engine is driven from outside: a *driver* takes [orders](Order) out of an [`Office`] ("start worker 3", "send it this"), and says
//! there what became of them. Messages are those of worker processes; what a task made comes beside its answer as one block, which lies wherever the engine
//! keeps it, and is read there; or, where the [link](links) is slow, packed, and is unpacked here. A worker is an [`Evaluator`], which hears a message and answers.

mod blocks;
mod carrier;
mod choice;
mod credits;
mod evaluator;
mod gate;
mod kept;
mod launch;
mod letter;
mod links;
mod office;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod pool_tests;
mod pooled;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;

pub(crate) use carrier::Blame;
pub(crate) use evaluator::Evaluator;
pub(crate) use launch::{FarLaunch, FarOptions};
pub(crate) use links::{Compress, Hand};
#[cfg(test)]
pub(crate) use office::office;
pub(crate) use office::{Office, Order, office_by};
pub(crate) use pooled::Pooled;
