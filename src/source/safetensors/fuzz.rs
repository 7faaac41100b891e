//! The fuzz target.

use super::Safetensors;
use crate::source::fuzzing::some;

/// Reads the input as a safetensors file, with files and with rows as records.
pub(crate) fn safetensors(data: &[u8]) {
    for rows in [false, true] {
        if let Ok(source) = Safetensors::options().rows(rows).float8_as_u8(true).open_bytes(data) {
            some(&source);
        }
    }
}
