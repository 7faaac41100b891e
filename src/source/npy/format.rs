//! A NumPy array.

use super::facts::{Facts, Turn};

pub(in crate::source) const FACTS: Facts = Facts {
    sign: Some((Turn::Magic, |probe| probe.begins(b"\x93NUMPY"))),
    ..Facts::of(
        "npy",
        "Reads the rows of `.npy` files along their first dimension.\n\n\
         Elements are dicts of one array, a view of the file.",
        &[".npy"],
    )
};
