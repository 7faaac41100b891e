//! The part of the PJRT C API that gristmill uses: struct layouts, and calls with checks before and after.
//!
//! Written from the facts of `pjrt_c_api.h` of API 0.81 (The OpenXLA Authors; shipped in the wheel `xla-cpu-pjrt`
//! 0.0.1). Since 0.57, the function table and the structs have grown only at their ends.

mod api;
mod args;
mod types;

pub(super) use api::{Api, Failure, text};
pub(super) use args::*;
pub(super) use types::*;
