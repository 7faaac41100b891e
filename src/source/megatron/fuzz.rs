//! The fuzz target.

use super::{Megatron, MegatronUnit};
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] = &[("megatron", megatron)];

/// Reads the input as a Megatron index over a few ids.
fn megatron(data: &[u8]) {
    for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
        if let Ok(source) = Megatron::options().unit(unit).open_bytes(data, &[1; 64]) {
            some(&source);
        }
    }
}
