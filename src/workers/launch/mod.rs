//! Start and ownership of worker processes.
//!
//! A [`Program`] describes the work of a worker, [`start`] runs it in a new process, and a [`Worker`] is the parent's
//! handle to that process. The new process is the running program, started again. The [`hook`] takes over before
//! `main`; the [`child`] side sets up the process and runs the program.

mod child;
mod command;
mod exit;
mod failure;
mod handshake;
mod hook;
mod identity;
mod program;
mod spawn;
mod starter;
#[cfg(test)]
mod tests;
mod worker;
#[cfg(any(feature = "python", test))]
mod zygote;

pub use command::set_worker_command;
pub use hook::init;

#[cfg(feature = "python")]
pub(crate) use command::WorkerCommand;
pub(crate) use exit::Exit;
pub(crate) use failure::LaunchFailure;
#[cfg(feature = "python")]
pub(crate) use program::FromBytes;
pub(crate) use program::Program;
pub(crate) use spawn::{Options, start};
#[cfg(feature = "python")]
pub(crate) use starter::Starter;
pub(crate) use worker::Worker;
