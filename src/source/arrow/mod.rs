//! Shared parts of the formats built on Arrow record batches.

pub(crate) mod block_files;
mod build;
mod changes;
mod column;
pub(crate) mod columns;
mod common;
pub(crate) mod kind;
#[cfg(all(test, feature = "arrow", feature = "parquet"))]
mod lakes;
pub(crate) mod logical;
#[cfg(any(feature = "arrow", feature = "python"))]
pub(crate) mod own;
pub(crate) mod partitions;
mod ragged;
pub(crate) mod rows;
pub(crate) mod spans;
mod tensors;
#[cfg(test)]
mod tests;
pub(crate) mod types;
pub(crate) mod value;
pub(crate) mod widen;

use arrow_schema::ArrowError;

use crate::error::{Error, ErrorKind};

/// Converts Arrow's error for a failed write.
#[cold]
pub(crate) fn failed(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(text, source) => Error::new(ErrorKind::Io, text).caused_by(source),
        other => Error::data(other.to_string()),
    }
}
