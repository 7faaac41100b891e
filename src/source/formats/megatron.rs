//! Megatron's indexed datasets.

use super::facts::{Facts, Turn};
use crate::source::megatron;

pub(super) const FACTS: Facts = Facts {
    sign: Some((Turn::Beside, |probe| megatron::is_index(probe.head()) || megatron::has_index_beside(&probe.path))),
    ..Facts::of("megatron", &[".idx"])
};
