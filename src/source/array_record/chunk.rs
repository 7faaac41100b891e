//! A chunk in a file: its header, and the hashes of its header and data.

use std::ops::Range;

use highway::{HighwayHash, HighwayHasher, Key};

use super::super::pieces::Pieces;
use super::layout::Span;
use crate::error::{Error, Result};
use crate::source::checksums;

pub(super) const HEADER: u64 = 40;
/// Type of a simple chunk: the sizes of its records, then the records one after the other.
pub(super) const SIMPLE: u8 = b'r';
/// Type of a transposed chunk: protocol messages stored field by field.
pub(super) const TRANSPOSED: u8 = b't';
/// Type of the first chunk of every file.
pub(super) const SIGNATURE: u8 = b's';
pub(super) const METADATA: u8 = b'm';
pub(super) const PADDING: u8 = b'p';

/// Computes HighwayHash-64 with the format's key.
pub(super) fn hash<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    const KEY: Key = Key([0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572, 0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572]);
    let mut hasher = HighwayHasher::new(KEY);
    pieces.into_iter().for_each(|piece| hasher.append(piece));
    hasher.finalize64()
}

/// Header of a chunk; its hash was checked.
pub(super) struct Head {
    /// Bytes of data after the header.
    pub(super) size: u64,
    pub(super) records: u64,
    /// Total size of the decoded records, in bytes.
    pub(super) decoded: u64,
    pub(super) kind: u8,
    data_hash: u64,
}

impl Head {
    /// Reads the header at `begin`, which must end at or before `limit`.
    ///
    /// # Errors
    /// Data, at the offset of the chunk, if the header does not fit or its hash is wrong.
    pub(super) fn at(file: &Pieces<'_>, begin: u64, limit: u64) -> Result<Self> {
        let fault = |text: String| Error::data(text).offset(begin);
        let header = Span::new(file, begin, HEADER, limit);
        let header = header.ok_or_else(|| fault("there is no room for a chunk".to_owned()))?.read(0..HEADER);
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let (stored, computed) = (word(0), hash([&header[8..]]));
        if stored != computed && checksums::are_checked() {
            return Err(fault(format!("the hash of the chunk header is {stored:#018x}, computed {computed:#018x}")));
        }
        Ok(Self { size: word(8), records: word(24) >> 8, decoded: word(32), kind: header[24], data_hash: word(16) })
    }
}

/// Chunk whose header was checked and which ends inside of its file.
pub(super) struct Chunk<'a> {
    /// Header and data.
    pub(super) span: Span<'a>,
    pub(super) begin: u64,
    pub(super) records: u64,
    /// Total size of the decoded records, in bytes.
    pub(super) decoded: u64,
    pub(super) kind: u8,
    data_hash: u64,
}

impl<'a> Chunk<'a> {
    /// Opens the chunk at `begin`, which must end at or before `limit`.
    ///
    /// # Errors
    /// Data, at the offset of the chunk, if its header is damaged or its size does not fit.
    pub(super) fn at(file: &'a Pieces<'a>, begin: u64, limit: u64) -> Result<Self> {
        let Head { size, records, decoded, kind, data_hash } = Head::at(file, begin, limit)?;
        let span = size.checked_add(HEADER).and_then(|len| Span::new(file, begin, len, limit));
        let Some(span) = span else {
            let room = limit.saturating_sub(begin);
            return Err(Error::data(format!("a chunk of {size} bytes, where there is room for {room}")).offset(begin));
        };
        Ok(Self { span, begin, records, decoded, kind, data_hash })
    }

    /// Returns the range of the data in the span: all bytes after the header.
    pub(super) fn data(&self) -> Range<u64> {
        HEADER..self.span.len
    }

    /// Checks the data against its hash.
    pub(super) fn check_data(&self) -> Result<()> {
        let (stored, computed) = (self.data_hash, hash(self.span.pieces(self.data())));
        if stored != computed && checksums::are_checked() {
            return Err(self.fault(format!("the hash of the chunk is {stored:#018x}, computed {computed:#018x}")));
        }
        Ok(())
    }

    /// Returns true if the records are transposed, and false if they are simple.
    ///
    /// # Errors
    /// Data, if the chunk does not hold records.
    pub(super) fn is_transposed(&self) -> Result<bool> {
        match self.kind {
            SIMPLE => Ok(false),
            TRANSPOSED => Ok(true),
            other => Err(self.fault(format!("a chunk of type {other:#04x}, records are in type 0x72"))),
        }
    }

    /// Returns a data error at the offset of this chunk.
    #[cold]
    pub(super) fn fault(&self, text: impl Into<String>) -> Error {
        Error::data(text).offset(self.begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_the_format() {
        // The block header at the start of every file: 0 bytes from the start of the chunk, 64 bytes to its end.
        let numbers = [0u64.to_le_bytes(), 64u64.to_le_bytes()];
        assert_eq!(hash(numbers.iter().map(<[u8; 8]>::as_slice)), 0x3f4a_880d_d170_af83);
    }
}
