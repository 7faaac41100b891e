//! The fuzz target.

use super::ParquetOptions;
use crate::source::fuzzing::{Target, contents, opened};

pub(in crate::source) const TARGETS: &[Target] = &[("parquet", parquet)];

/// Reads the input as a Parquet file.
fn parquet(data: &[u8]) {
    opened(ParquetOptions::default().open_contents(contents("x.parquet", data)));
}
