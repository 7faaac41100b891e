//! The fuzz target.

use super::{Megatron, MegatronUnit};
use crate::source::fuzzing::some;

/// Reads the input as a Megatron index over a few ids.
pub(crate) fn megatron(data: &[u8]) {
    for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
        if let Ok(source) = Megatron::options().unit(unit).open_bytes(data, &[1; 64]) {
            some(&source);
        }
    }
}
