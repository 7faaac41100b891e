//! What is the operating system's: processes by descriptor, signals, loaded modules, limits, usage. Linux.

#![cfg_attr(not(test), allow(dead_code, unused_imports, reason = "the coordinator will be the caller"))]

pub(crate) mod limits;
pub(crate) mod modules;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod usage;
