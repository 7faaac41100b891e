//! Tensors by name.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(super) const FACTS: Facts =
    Facts { sign: Some((Turn::Json, begins_with_header)), ..Facts::of("safetensors", &[".safetensors"]) };

/// Returns true if the file begins with a header: a length that fits, and a JSON object.
fn begins_with_header(probe: &Probe) -> bool {
    let Some((length, header)) = probe.head().split_first_chunk() else { return false };
    let length = u64::from_le_bytes(*length);
    (2..=probe.size.saturating_sub(8)).contains(&length) && header.starts_with(b"{")
}
