//! The index of a file: the offsets of its chunks, read from the footer.

use super::super::content::Content;
use super::super::firsts::Firsts;
use super::chunk::Chunk;
use super::layout::BLOCK;
use super::records::Records;
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::varint::{Field, fields};

/// Magic number of an ArrayRecord file, in its postscript.
pub(super) const MAGIC: u64 = 0x7193_0e70_4fda_e05e;
/// Offset of the first chunk after the signature.
pub(super) const FIRST_CHUNK: u64 = 64;

/// Offset and number of records of each chunk of a file.
#[derive(Debug)]
pub(super) struct Index {
    chunks: Vec<Entry>,
    /// First record of each chunk. Compact if all chunks have equally many records, as in files of the known writers.
    firsts: Firsts,
    /// Offset of the footer, which is also the end of the last chunk.
    end: u64,
}

/// A chunk as stored in the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) begin: u64,
    pub(super) decoded: u64,
}

/// A chunk as found by a lookup in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chunk: usize,
    pub(super) begin: u64,
    /// Offset of the next chunk.
    pub(super) limit: u64,
    pub(super) decoded: u64,
    pub(super) records: u64,
    /// Number of the chunk's first record in the file.
    pub(super) first: u64,
}

impl Index {
    /// Reads postscript and footer. Holds 16 bytes per chunk, or 24 if chunks differ in their number of records.
    ///
    /// # Errors
    /// Data, at the offset of the damage.
    pub(super) fn read(file: &Content) -> Result<Self> {
        let size = file.len();
        if size < 2 * BLOCK || !size.is_multiple_of(BLOCK) {
            let text =
                format!("{size} bytes, where an ArrayRecord has a multiple of {BLOCK} and at least {}", 2 * BLOCK);
            return Err(Error::data(text)
                .offset(size)
                .help("the file is cut, or its writer was not closed; `recover` reads the records that are there"));
        }
        let footer = Self::footer_offset(file, size - BLOCK).map_err(|e| e.offset(size - BLOCK))?;
        if !(FIRST_CHUNK..size - BLOCK).contains(&footer) {
            let text =
                format!("the footer is said to be at {footer}, which is no place between {FIRST_CHUNK} and here");
            return Err(Error::data(text).offset(size - BLOCK));
        }
        Self::of_footer(file, footer, size - BLOCK).map_err(|e| e.and(" (in the footer)").offset(footer))
    }

    /// Reads the index from the footer at `begin`, which must end at or before `limit`.
    pub(super) fn of_footer(file: &Content, begin: u64, limit: u64) -> Result<Self> {
        let footer = records(file, begin, limit)?;
        let head = footer.record(0, file)?.ok_or_else(|| Error::data("no records"))?;
        let (chunks, len) = totals(head.as_bytes())?;
        if footer.len() as u64 - 1 != chunks {
            return Err(Error::data(format!("{} chunks, {chunks} are announced", footer.len() - 1)));
        }
        let mut entries = Vec::with_capacity(footer.len() - 1);
        let (mut counts, mut last) = (Vec::with_capacity(footer.len() - 1), FIRST_CHUNK - 1);
        for place in 1..footer.len() {
            let record = footer.record(place, file)?.unwrap_or(Buffer::EMPTY);
            let (entry, records) = entry(record.as_bytes()).ok_or_else(|| Error::data("a damaged entry"))?;
            if entry.begin <= last || entry.begin >= begin {
                let text = format!("chunk {} at {}, behind one at {last}", place - 1, entry.begin);
                return Err(Error::data(text));
            }
            last = entry.begin;
            entries.push(entry);
            counts.push(records);
        }
        let firsts = Firsts::of(counts)?;
        if firsts.len != len {
            return Err(Error::data(format!(
                "the chunks have {} records together, but the index states {len}",
                firsts.len
            )));
        }
        Ok(Self { chunks: entries, firsts, end: begin })
    }

    /// Returns the offset of the footer, read from the postscript at `begin`.
    pub(super) fn footer_offset(file: &Content, begin: u64) -> Result<u64> {
        let records = records(file, begin, begin + BLOCK).map_err(|e| e.and(" (in the postscript)"))?;
        let record = records.record(0, file)?.unwrap_or(Buffer::EMPTY);
        let (mut offset, mut magic) = (0, 0);
        let whole = fields(record.as_bytes(), |number, field| match number {
            1 => offset = field.number(),
            2 => magic = field.number(),
            _ => {}
        });
        if whole.is_none() || magic != MAGIC {
            return Err(Error::data(format!(
                "magic {magic:#018x} in the postscript, an ArrayRecord has {MAGIC:#018x}"
            ))
            .help("a Riegeli file without the index of an ArrayRecord is not supported"));
        }
        Ok(offset)
    }

    /// Builds an index of chunks that were found without a footer, and their record counts, in a file that ends at
    /// `end`.
    pub(super) fn of_chunks(chunks: Vec<Entry>, counts: &[u64], end: u64) -> Result<Self> {
        Ok(Self { chunks, firsts: Firsts::of(counts.iter().copied())?, end })
    }

    /// Returns the number of records in the file.
    pub(super) fn len(&self) -> u64 {
        self.firsts.len
    }

    /// Returns the number of chunks in the file.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the number of records of each chunk.
    pub(super) fn records_of_chunks(&self) -> impl Iterator<Item = u64> {
        (0..self.chunks.len()).map(|chunk| self.firsts.count(chunk))
    }

    pub(super) fn decoded(&self) -> u64 {
        self.chunks.iter().fold(0, |bytes, chunk| bytes.saturating_add(chunk.decoded))
    }

    /// Returns true if a chunk holds more than one record.
    pub(super) fn is_grouped(&self) -> bool {
        self.firsts.is_grouped()
    }

    pub(super) fn memory(&self) -> usize {
        self.firsts.memory() + size_of_val(self.chunks.as_slice())
    }

    /// Returns the chunk that holds a record.
    #[inline]
    pub(super) fn find(&self, record: u64) -> Option<Place> {
        let (chunk, at) = self.firsts.find(record).ok()?;
        let entry = self.chunks.get(chunk)?;
        let limit = self.chunks.get(chunk + 1).map_or(self.end, |next| next.begin);
        let (records, first) = (self.firsts.count(chunk), record - at);
        Some(Place { chunk, begin: entry.begin, limit, decoded: entry.decoded, records, first })
    }
}

/// Decodes all records of a chunk that belongs to the index.
fn records(file: &Content, begin: u64, limit: u64) -> Result<Records> {
    let pieces = file.pieces(begin..limit)?;
    let chunk = Chunk::at(&pieces, begin, limit)?;
    chunk.check_data()?;
    Records::decode(&chunk, file.here().is_some())
}

/// Returns the numbers of chunks and records from the first record of the footer.
fn totals(record: &[u8]) -> Result<(u64, u64)> {
    let mut message = None;
    let damaged = || Error::data("a damaged head");
    let take = |number, field| {
        if let (1, Field::Bytes(bytes)) = (number, field) {
            message = Some(bytes);
        }
    };
    fields(record, take).ok_or_else(damaged)?;
    let (mut version, mut chunks, mut records) = (0, 0, 0);
    let take = |number, field: Field<'_>| match number {
        1 => version = field.number(),
        2 => chunks = field.number(),
        3 => records = field.number(),
        _ => {}
    };
    fields(message.ok_or_else(damaged)?, take).ok_or_else(damaged)?;
    match version {
        1 => Ok((chunks, records)),
        other => Err(Error::unsupported(format!("the format has version {other}, and only version 1 is supported"))),
    }
}

fn entry(record: &[u8]) -> Option<(Entry, u64)> {
    let (mut entry, mut records) = (Entry { begin: 0, decoded: 0 }, 0);
    fields(record, |number, field| match number {
        1 => entry.begin = field.number(),
        2 => entry.decoded = field.number(),
        3 => records = field.number(),
        _ => {}
    })?;
    Some((entry, records))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_and_uneven_chunks_are_found() {
        for counts in [vec![3, 3, 2], vec![3, 2, 3], vec![2, 3], vec![5], vec![0, 2]] {
            let len = counts.iter().sum();
            let chunks = (0..counts.len() as u64).map(|i| Entry { begin: 64 + 100 * i, decoded: i }).collect();
            let index = Index::of_chunks(chunks, &counts, 9000).unwrap();
            let owners = counts.iter().enumerate().flat_map(|(chunk, &count)| vec![chunk; count as usize]);
            for (record, owner) in owners.enumerate() {
                let place = index.find(record as u64).unwrap();
                assert_eq!((place.chunk, place.records), (owner, counts[owner]), "{counts:?} {record}");
                assert_eq!(place.first, counts[..owner].iter().sum::<u64>());
            }
            assert_eq!(index.find(len), None);
        }
        assert!(Index::of_chunks(Vec::new(), &[u64::MAX, 2], 1).is_err());
    }
}
