//! Fuzz target.

use super::decode;
use crate::element::Buffer;
use crate::source::fuzzing::Target;

pub(in crate::source) const TARGETS: &[Target] = &[("npy", npy)];

/// Decodes a `.npy` file.
fn npy(data: &[u8]) {
    if let Ok(array) = decode(Buffer::copy_from(data)) {
        assert!(array.bytes().len() <= data.len());
    }
}
