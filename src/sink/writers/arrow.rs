//! Arrow IPC files.

use super::facts::{Facts, NewShard};
use super::{kinds, shard_writer};
use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::source::{ArrowCompression, ArrowWriter, ArrowWriterOptions};

pub(super) static FACTS: Facts = Facts {
    compressions: &[(Compression::None, ""), (Compression::Zstd(3), ""), (Compression::Lz4, "")],
    columns: Some(&kinds::COLUMNS),
    ..Facts::of(".arrow", |shard, create| Ok(Box::new(ArrowWriter::new(create(None)?, settings(shard)?)?)))
};

/// Returns the options of a writer of record batches.
pub(super) fn settings(NewShard { options, schema, .. }: &NewShard<'_>) -> Result<ArrowWriterOptions> {
    let codec = match options.compression {
        Compression::None => ArrowCompression::None,
        Compression::Zstd(level) => ArrowCompression::Zstd(level),
        Compression::Lz4 => ArrowCompression::Lz4,
        other => return Err(Error::config(format!("arrow has no compression {}", other.name()))),
    };
    let mut settings = ArrowWriterOptions::new().compression(codec);
    if let Some(schema) = schema {
        settings = settings.columns(kinds::of(schema)?);
    }
    if let Some(rows) = options.group {
        settings = settings.batch_rows(usize::try_from(rows).map_err(|_| Error::config("a group of 2^64 records"))?);
    }
    Ok(settings)
}

shard_writer!(ArrowWriter);
