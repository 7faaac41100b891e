//! Operating system calls for Linux: processes by descriptor, signals, loaded modules, limits, usage.

pub(crate) mod limits;
pub(crate) mod modules;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod usage;
