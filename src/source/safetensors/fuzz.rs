//! The fuzz target.

use super::Safetensors;
use crate::source::fuzzing::{Target, opened};

pub(in crate::source) const TARGETS: &[Target] = &[("safetensors", safetensors)];

/// Reads the input as a safetensors file, with files and with rows as records.
fn safetensors(data: &[u8]) {
    for rows in [false, true] {
        opened(Safetensors::options().rows(rows).float8_as_u8(true).open_bytes(data));
    }
}
