//! A mapped file as the `parquet` crate reads it: slices without a copy, every range checked.

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use crate::element::Buffer;

#[derive(Clone)]
pub(super) struct Chunks(Bytes);

/// What keeps the memory alive in [`Bytes`].
struct Mapped(Buffer);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Chunks {
    pub(super) fn new(file: Buffer) -> Self {
        Self(Bytes::from_owner(Mapped(file)))
    }

    fn slice(&self, start: u64, length: Option<usize>) -> Result<Bytes> {
        let range = || {
            let start = usize::try_from(start).ok()?;
            let end = length.map_or(Some(self.0.len()), |length| start.checked_add(length))?;
            (start <= end && end <= self.0.len()).then(|| self.0.slice(start..end))
        };
        range().ok_or_else(|| {
            let length = length.map_or_else(|| "bytes".to_owned(), |length| format!("{length} bytes"));
            ParquetError::EOF(format!("{length} from byte {start} on, in a file of {}", self.0.len()))
        })
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl ChunkReader for Chunks {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Reader<Bytes>> {
        Ok(self.slice(start, None)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.slice(start, Some(length))
    }
}
