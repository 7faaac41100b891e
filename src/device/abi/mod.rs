//! The part of the PJRT C API that gristmill uses: the layouts of its structs, and calls that check before and after.
//!
//! Written from the facts of `pjrt_c_api.h` of API 0.81 (The OpenXLA Authors; the wheel `xla-cpu-pjrt` 0.0.1 ships it).
//! From 0.57 on the table of functions only grows at its end, and structs only at theirs.

mod api;
mod args;
mod types;

pub(super) use api::{Api, Failure, text};
pub(super) use args::*;
pub(super) use types::*;
