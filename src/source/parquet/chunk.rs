//! Input for the `parquet` crate: slices of a file, without copies if it is mapped. Every range is checked.

use std::fmt::Display;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::fields::PAGE;
use super::thrift;
use crate::element::Buffer;
use crate::error::Error;
use crate::source::contained::check_claim;
use crate::source::content::Content;
use crate::sync::Locked;

/// Number of bytes at the end of every file: the length of the footer and the magic.
pub(super) const TAIL: u64 = 8;

#[derive(Clone)]
pub(super) struct Chunks {
    pub(super) content: Content,
    /// Starts of pages that are read whole because they have an index; ascending.
    pages: Arc<[u64]>,
    /// Error of the last failed read. The decoder passes on at most its text.
    failure: Arc<Mutex<Option<Error>>>,
}

/// Owner of the memory of a [`Bytes`].
struct Piece(Buffer);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Chunks {
    pub(super) fn new(content: Content) -> Self {
        Self { content, pages: Arc::default(), failure: Arc::default() }
    }

    /// Returns a copy in which pages with these starts are read whole.
    pub(super) fn with_pages(&self, mut pages: Vec<u64>) -> Self {
        pages.sort_unstable();
        Self { pages: pages.into(), ..self.clone() }
    }

    /// Takes the error of a failed read, which caused the decoder's error.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.locked().take()
    }

    fn slice(&self, start: u64, end: Option<u64>) -> Result<Buffer> {
        let Some(end) = end.filter(|&end| start <= end && end <= self.content.len()) else {
            let text = format!("bytes from {start} to {end:?}, in a file of {}", self.content.len());
            return Err(ParquetError::EOF(text));
        };
        self.content.read(start..end).map_err(|error| {
            let text = error.to_string();
            *self.failure.locked() = Some(error);
            ParquetError::General(text)
        })
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.content.len()
    }
}

impl ChunkReader for Chunks {
    type T = From;

    /// Reads headers of pages without an index, and the end of the file. The decoder uses this method for nothing else.
    fn get_read(&self, start: u64) -> Result<From> {
        self.slice(start, Some(start))?;
        if start.checked_add(TAIL) != Some(self.content.len()) {
            check(From::new(self, start), start, self.content.len() - start)?;
        }
        Ok(From::new(self, start))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.slice(start, start.checked_add(length as u64))?;
        if self.pages.binary_search(&start).is_ok() {
            check(bytes.as_bytes(), start, length as u64)?;
        }
        Ok(Bytes::from_owner(Piece(bytes)))
    }
}

/// Checks the header of the page at byte `start`, which has at most `room` bytes.
///
/// Limits the work to parse the header by its length. Rejects an implausible page size, because the decoder allocates
/// the claimed size.
fn check(header: impl Read, start: u64, room: u64) -> Result<()> {
    let fault = |what: &dyn Display| ParquetError::General(format!("the page at byte {start}: {what}"));
    let [_, _, unpacked, packed] = thrift::check(header, PAGE).map_err(|e| fault(&format!("its header: {e}")))?;
    if let (Ok(unpacked), Ok(packed)) = (u64::try_from(unpacked), u64::try_from(packed)) {
        let claimed = check_claim(packed.min(room), unpacked);
        claimed.map_err(|e| fault(&format!("{}: if it is true, write smaller pages", e.message())))
    } else {
        Err(fault(&format!("it claims to have {packed} bytes, of {unpacked}")))
    }
}

/// Reader from a position in the file onward.
pub(super) struct From {
    chunks: Chunks,
    /// End of the current piece in the file.
    at: u64,
    piece: Buffer,
    taken: usize,
}

impl From {
    fn new(chunks: &Chunks, start: u64) -> Self {
        Self { chunks: chunks.clone(), at: start, piece: Buffer::EMPTY, taken: 0 }
    }

    /// Reads the next piece: the rest of a mapped file, or at most 64 KiB from a store.
    fn next_piece(&mut self) -> Result<()> {
        const FAR: u64 = 64 << 10;
        let len = self.chunks.content.len();
        let end = if self.chunks.content.here().is_some() { len } else { len.min(self.at + FAR) };
        self.piece = self.chunks.slice(self.at, Some(end))?;
        (self.at, self.taken) = (end, 0);
        Ok(())
    }
}

impl Read for From {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() {
            self.next_piece().map_err(io::Error::other)?;
        }
        let read = (&self.piece.as_bytes()[self.taken..]).read(out)?;
        self.taken += read;
        Ok(read)
    }
}
