//! The fuzz target.

use super::{Megatron, MegatronUnit};
use crate::source::fuzzing::{Target, opened};

pub(in crate::source) const TARGETS: &[Target] = &[("megatron", megatron)];

/// Reads the input as a Megatron index over a few ids.
fn megatron(data: &[u8]) {
    for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
        opened(Megatron::options().unit(unit).open_bytes(data, &[1; 64]));
    }
}
