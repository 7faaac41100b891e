//! The target of the fuzzers.

use super::Safetensors;
use crate::source::fuzzing::some;

/// A safetensors file, as one record and as rows.
pub(crate) fn safetensors(data: &[u8]) {
    for rows in [false, true] {
        if let Ok(source) = Safetensors::options().rows(rows).float8_as_u8(true).open_bytes(data) {
            some(&source);
        }
    }
}
