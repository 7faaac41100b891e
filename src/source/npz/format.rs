//! Archives of NumPy arrays.

use super::facts::{Facts, Turn};

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::Magic, |probe| probe.begins(b"PK\x03\x04") || probe.begins(b"PK\x05\x06"))),
    ..Facts::of(
        "npz",
        "Reads the arrays of `.npz` archives: a record for each archive, or for each row of its arrays.\n\n\
         Elements are dicts of arrays.",
        &[".npz"],
    )
};
