//! Parquet.

use std::sync::Arc;

use rayon::ThreadPool;

use super::{Create, Finished, ShardWriter};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::sink::compression::Compression;
use crate::sink::options::SinkOptions;
use crate::sink::schema::{Schema, kinds};
use crate::sink::shard_file::ShardFile;
use crate::source::{ParquetCompression, ParquetWriter, ParquetWriterOptions};

pub(super) fn open(
    options: &SinkOptions,
    schema: Option<&Schema>,
    pool: Option<&Arc<ThreadPool>>,
    create: Create<'_>,
) -> Result<Box<dyn ShardWriter>> {
    let codec = match options.compression {
        Compression::None => ParquetCompression::None,
        Compression::Zstd(level) => ParquetCompression::Zstd(level),
        Compression::Gzip(level) => ParquetCompression::Gzip(level),
        Compression::Lz4 => ParquetCompression::Lz4,
        Compression::Snappy => ParquetCompression::Snappy,
        Compression::Brotli(quality) => ParquetCompression::Brotli(quality),
    };
    let mut settings = ParquetWriterOptions::new().compression(codec).byte_stream_split(options.byte_stream_split);
    if let Some(schema) = schema {
        settings = settings.columns(kinds::of(schema)?);
    }
    if let Some(pool) = pool {
        settings = settings.pool(pool.clone());
    }
    if let Some(rows) = options.group {
        settings =
            settings.row_group_rows(usize::try_from(rows).map_err(|_| Error::config("a group of 2^64 records"))?);
    }
    Ok(Box::new(ParquetWriter::new(create(None)?, settings)?))
}

impl ShardWriter for ParquetWriter<ShardFile> {
    fn write(&mut self, element: &Element) -> Result<()> {
        self.write(element)
    }

    fn finish(self: Box<Self>) -> Result<Finished> {
        Ok((*self).finish()?.into())
    }
}
