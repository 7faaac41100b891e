//! Parquet.

use serde_json::json;

use super::facts::{Create, Facts, NewShard};
use super::{ShardWriter, kinds, shard_writer};
use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::source::{ParquetCompression, ParquetWriter, ParquetWriterOptions};

pub(super) static FACTS: Facts = Facts {
    compressions: &[
        (Compression::Zstd(3), ""),
        (Compression::None, ""),
        (Compression::Snappy, ""),
        (Compression::Lz4, ""),
        (Compression::Gzip(6), ""),
        (Compression::Brotli(5), ""),
    ],
    has_parts: true,
    columns: Some(&kinds::COLUMNS),
    options: |options| vec![("byte_stream_split", json!(options.byte_stream_split))],
    ..Facts::of(".parquet", open)
};

fn open(shard: &NewShard<'_>, create: Create<'_>) -> Result<Box<dyn ShardWriter>> {
    let options = shard.options;
    let codec = match options.compression {
        Compression::None => ParquetCompression::None,
        Compression::Zstd(level) => ParquetCompression::Zstd(level),
        Compression::Gzip(level) => ParquetCompression::Gzip(level),
        Compression::Lz4 => ParquetCompression::Lz4,
        Compression::Snappy => ParquetCompression::Snappy,
        Compression::Brotli(quality) => ParquetCompression::Brotli(quality),
    };
    let mut settings = ParquetWriterOptions::new().compression(codec).byte_stream_split(options.byte_stream_split);
    if let Some(schema) = shard.schema {
        settings = settings.columns(kinds::of(schema)?);
    }
    if let Some(pool) = shard.pool {
        settings = settings.pool(pool.clone());
    }
    if let Some(rows) = options.group {
        settings =
            settings.row_group_rows(usize::try_from(rows).map_err(|_| Error::config("a group of 2^64 records"))?);
    }
    Ok(Box::new(ParquetWriter::new(create(None)?, settings)?))
}

shard_writer!(ParquetWriter);
