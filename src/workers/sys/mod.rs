//! What is the operating system's: processes by descriptor, signals, loaded modules, limits, usage. Linux.

pub(crate) mod limits;
pub(crate) mod modules;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod usage;
