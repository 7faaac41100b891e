//! A NumPy array.

use super::facts::{Facts, Turn};

pub(super) const FACTS: Facts =
    Facts { sign: Some((Turn::Magic, |probe| probe.begins(b"\x93NUMPY"))), ..Facts::of("npy", &[".npy"]) };
