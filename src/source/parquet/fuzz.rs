//! The fuzz target.

use super::ParquetOptions;
use crate::element::Buffer;
use crate::source::fuzzing::{Target, some};

pub(in crate::source) const TARGETS: &[Target] = &[("parquet", parquet)];

/// Reads the input as a Parquet file.
fn parquet(data: &[u8]) {
    let contents = vec![("x.parquet".into(), Buffer::copy_from(data).into())];
    if let Ok(source) = ParquetOptions::default().open_contents(contents) {
        some(&source);
    }
}
