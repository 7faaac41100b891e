//! The bytes of a file, wherever it lies.
#![cfg_attr(not(feature = "formats"), allow(dead_code, reason = "what all formats share, no one format needs whole"))]

#[cfg(feature = "compress")]
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{self, FileId, Patterns};
use super::mmap::{Access, Mapping};
use crate::element::Buffer;
use crate::error::{Error, Result};

/// What a file holds. Formats read the ranges they need and no others, so that what lies far away need not come whole.
#[derive(Clone, Debug)]
pub(crate) struct Content(Buffer);

impl Content {
    /// Maps a file.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self> {
        Ok(Self(Buffer::from_owner(Arc::new(Mapping::open(path, access)?))))
    }

    /// Bytes in it.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// A range of its bytes: a view where they are mapped.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the offset if the range reaches over the end.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Buffer> {
        let outside = || {
            let text = format!("bytes {} to {} of a file of {}", range.start, range.end, self.len());
            Error::data(text).offset(range.start.min(self.len())).help("the file is cut or damaged")
        };
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end)) else {
            return Err(outside());
        };
        self.0.slice(start..end).ok_or_else(outside)
    }

    /// All of its bytes.
    pub(crate) fn whole(&self) -> Result<Buffer> {
        self.read(0..self.len())
    }

    /// Its bytes front to back.
    #[cfg(feature = "compress")]
    pub(crate) fn stream(&self) -> Stream {
        Stream { content: self.clone(), piece: Buffer::EMPTY, taken: 0, next: 0 }
    }

    /// Its part in the identity of a source.
    pub(crate) fn id(&self, path: &Path) -> Result<FileId> {
        Ok(FileId::new(path, self.0.as_bytes()))
    }
}

/// The bytes of a [`Content`], front to back.
#[cfg(feature = "compress")]
#[derive(Debug)]
pub(crate) struct Stream {
    content: Content,
    piece: Buffer,
    /// Of the piece.
    taken: usize,
    /// Where the piece ends in the file.
    next: u64,
}

/// Bytes of a piece.
#[cfg(feature = "compress")]
const PIECE: u64 = 4 << 20;

#[cfg(feature = "compress")]
impl Stream {
    /// Bytes of the file that were taken.
    pub(crate) fn position(&self) -> u64 {
        self.next - (self.piece.len() - self.taken) as u64
    }

    /// Goes to a place in the file, if there is such a place.
    pub(crate) fn seek(&mut self, position: u64) -> bool {
        let inside = position <= self.content.len();
        if inside {
            (self.piece, self.taken, self.next) = (Buffer::EMPTY, 0, position);
        }
        inside
    }
}

#[cfg(feature = "compress")]
impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(feature = "compress")]
impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.piece.len() && self.next < self.content.len() {
            let end = self.content.len().min(self.next + PIECE);
            self.piece = self.content.read(self.next..end).map_err(io::Error::other)?;
            (self.taken, self.next) = (0, end);
        }
        Ok(&self.piece.as_bytes()[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.piece.len());
    }
}

/// Bytes that are in memory already.
impl From<Buffer> for Content {
    fn from(bytes: Buffer) -> Self {
        Self(bytes)
    }
}

/// The files that `patterns` name, in their order, opened.
pub(crate) fn open_all(
    patterns: impl Patterns,
    extensions: &[&str],
    access: Access,
) -> Result<Vec<(PathBuf, Content)>> {
    let open = |path: PathBuf| Ok((path.clone(), Content::open(&path, access)?));
    files::find(patterns, extensions)?.into_iter().map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "compress")]
    #[test]
    fn a_stream_crosses_its_pieces_and_goes_back() {
        let bytes: Vec<u8> = (0..2 * PIECE + 10).map(|i| (i % 251) as u8).collect();
        let mut stream = Content::from(Buffer::copy_from(&bytes)).stream();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert!(all == bytes && stream.position() == bytes.len() as u64);
        assert!(stream.seek(PIECE - 1) && !stream.seek(bytes.len() as u64 + 1));
        let mut two = [0; 2];
        stream.read_exact(&mut two).unwrap();
        assert_eq!((two.as_slice(), stream.position()), (&bytes[PIECE as usize - 1..][..2], PIECE + 1));
    }

    #[test]
    fn ranges_are_views_and_reach_no_further() {
        let content = Content::from(Buffer::copy_from(b"0123456789"));
        assert_eq!((content.len(), content.read(2..5).unwrap().as_bytes()), (10, b"234".as_slice()));
        assert_eq!(content.whole().unwrap().len(), 10);
        assert_eq!(content.read(10..10).unwrap().len(), 0);
        for range in [3..11, 11..12, u64::MAX - 1..u64::MAX] {
            assert!(content.read(range.clone()).unwrap_err().message().contains("of a file of 10"), "{range:?}");
        }
    }
}
