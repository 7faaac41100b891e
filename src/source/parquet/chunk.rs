//! A file as the `parquet` crate reads it: slices without a copy where it is mapped, every range checked.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::element::Buffer;
use crate::error::Error;
use crate::source::content::{Content, Stream};

#[derive(Clone)]
pub(super) struct Chunks(pub(super) Content);

/// What keeps the memory alive in [`Bytes`].
struct Range(Buffer);

impl AsRef<[u8]> for Range {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = Stream;

    fn get_read(&self, start: u64) -> Result<Stream> {
        let mut stream = self.0.stream();
        if stream.seek(start) { Ok(stream) } else { Err(outside(start, None, self.0.len())) }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|&end| end <= self.0.len());
        let end = end.ok_or_else(|| outside(start, Some(length), self.0.len()))?;
        let bytes = self.0.read(start..end).map_err(|e: Error| ParquetError::External(Box::new(e)))?;
        Ok(Bytes::from_owner(Range(bytes)))
    }
}

fn outside(start: u64, length: Option<usize>, len: u64) -> ParquetError {
    let length = length.map_or_else(|| "bytes".to_owned(), |length| format!("{length} bytes"));
    ParquetError::EOF(format!("{length} from byte {start} on, in a file of {len}"))
}
