//! Parquet.

use super::facts::{Facts, Turn};

pub(super) const FACTS: Facts =
    Facts { sign: Some((Turn::Magic, |probe| probe.begins(b"PAR1"))), ..Facts::of("parquet", &[".parquet"]) };
