//! Calls of the operating system: processes by descriptor, signals, loaded modules, limits, usage. Linux.

pub(crate) mod limits;
pub(crate) mod modules;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod usage;
