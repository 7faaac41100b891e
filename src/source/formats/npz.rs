//! Archives of NumPy arrays.

use super::facts::{Facts, Turn};

pub(super) const FACTS: Facts = Facts {
    sign: Some((Turn::Magic, |probe| probe.begins(b"PK\x03\x04") || probe.begins(b"PK\x05\x06"))),
    ..Facts::of("npz", &[".npz"])
};
