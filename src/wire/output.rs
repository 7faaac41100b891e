//! Words and bytes for an extent.

use std::ops::Range;

use super::foreign::Foreign;
use super::region::Region;
use super::structure::Structures;
use super::{ALIGN, HEADER, INLINE, MAX_DEPTH, block_bytes};
use crate::error::Error;

/// Reason why a record was not completed.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The extent has no room for the record.
    Full,
    /// The record cannot be encoded at all.
    Error(Error),
}

from_as!(Error => Stop, |error| Self::Error(error));

/// Positions of the next word and the next bytes.
#[derive(Clone, Copy)]
struct At {
    /// Bytes in use, from the start.
    end: usize,
    /// Position of the next word of the table, and of the last word of its block. The last word is the offset of the next block.
    word: usize,
    link: usize,
    blocks: u32,
    words: u64,
    /// Bytes allocated for the output so far, including given blocks.
    taken: u64,
}

/// A position to rewind to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    at: At,
    structures: usize,
    given: usize,
}

/// Position of a word of the table.
#[derive(Clone, Copy)]
pub(super) struct Place(usize);

/// An extent that is being written, or a dry run that only measures the length.
pub(crate) struct Out<'a> {
    /// Empty if only the length is measured.
    buf: Region<'a>,
    capacity: usize,
    at: At,
    /// Allocator through which foreign code may own parts of the extent.
    foreign: Option<Foreign>,
    depth: usize,
    pub(super) structures: Structures,
}

impl<'a> Out<'a> {
    pub(super) fn new(buf: &'a mut [u8]) -> Self {
        let buf = Region::new(buf);
        let (start, capacity) = (buf.expose(), buf.len);
        let foreign = Foreign::begin(start, capacity);
        let mut out = Self { foreign, ..Self::with_capacity(buf, capacity) };
        // A reader expects the table right after the header, so no block may be allocated before the first table block.
        if out.foreign.is_some() && out.block().is_err() {
            out.foreign = None;
        }
        out
    }

    /// Returns an output that only counts.
    pub(super) fn measure() -> Self {
        Self::with_capacity(Region::new(&mut []), usize::MAX)
    }

    fn with_capacity(buf: Region<'a>, capacity: usize) -> Self {
        let at = At { end: HEADER, word: 0, link: 0, blocks: 0, words: 0, taken: 0 };
        Self { buf, capacity, at, foreign: None, depth: 0, structures: Structures::default() }
    }

    /// Returns the bytes in use, from the start on.
    pub(super) fn used(&self) -> usize {
        self.foreign.as_ref().map_or(self.at.end, |foreign| foreign.needed(self.at.end))
    }

    /// Returns the unused bytes.
    pub(super) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.end())
    }

    /// Returns the end of all used bytes, including foreign blocks.
    #[inline]
    fn end(&self) -> usize {
        self.foreign.as_ref().map_or(self.at.end, |foreign| foreign.end(self.at.end))
    }

    /// Returns the bytes allocated so far.
    pub(super) fn taken(&self) -> u64 {
        self.at.taken
    }

    /// Returns true if foreign code has parts of the extent that are not part of the output.
    pub(super) fn has_foreign(&self) -> bool {
        self.foreign.as_ref().is_some_and(Foreign::has_others)
    }

    /// Returns the number of words in the table.
    pub(super) fn words(&self) -> u64 {
        self.at.words
    }

    pub(super) fn mark(&self) -> Mark {
        let given = self.foreign.as_ref().map_or(0, Foreign::given);
        Mark { at: self.at, structures: self.structures.len(), given }
    }

    /// Discards the output since `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.at = mark.at;
        self.depth = 0;
        self.structures.truncate(mark.structures);
        if let Some(foreign) = &self.foreign {
            foreign.rewind(mark.at.end, mark.given);
        }
    }

    /// Overwrites bytes. The caller must have reserved the place.
    #[inline]
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.buf.put(at, bytes);
    }

    /// Reserves `len` bytes and returns their start.
    #[inline]
    pub(super) fn reserve(&mut self, align: usize, len: usize) -> Result<usize, Stop> {
        let before = self.end();
        let start = before.checked_next_multiple_of(align);
        let range = start.and_then(|start| Some((start, start.checked_add(len)?)));
        match range {
            Some((start, end)) if end <= self.capacity => {
                self.at.end = end;
                self.at.taken += (end - before) as u64;
                if let Some(foreign) = &self.foreign {
                    foreign.wrote(end);
                }
                Ok(start)
            }
            _ => Err(Stop::Full),
        }
    }

    /// Writes the next word of the table.
    #[inline]
    pub(crate) fn word(&mut self, word: u64) -> Result<(), Stop> {
        if self.at.word == self.at.link {
            self.block()?;
        }
        self.put(self.at.word, &word.to_le_bytes());
        self.at.word += size_of::<u64>();
        self.at.words += 1;
        Ok(())
    }

    /// Writes a word that is [replaced](Self::replace) later. Returns its place.
    pub(super) fn place(&mut self, word: u64) -> Result<Place, Stop> {
        self.word(word)?;
        Ok(Place(self.at.word - size_of::<u64>()))
    }

    /// Overwrites a word.
    #[inline]
    pub(super) fn replace(&mut self, place: Place, word: u64) {
        self.put(place.0, &word.to_le_bytes());
    }

    #[cold]
    fn block(&mut self) -> Result<(), Stop> {
        let len = block_bytes(self.at.blocks);
        let start = self.reserve(ALIGN, len)?;
        if self.at.blocks > 0 {
            self.put(self.at.link, &(start as u64).to_le_bytes());
        }
        self.at.word = start;
        self.at.link = start + len - size_of::<u64>();
        self.at.blocks += 1;
        Ok(())
    }

    /// Writes bytes whose number the reader infers from earlier words. `align` applies to bytes outside the table.
    #[inline]
    pub(crate) fn bytes(&mut self, align: usize, bytes: &[u8]) -> Result<(), Stop> {
        if bytes.len() <= INLINE {
            let mut word = [0; INLINE];
            word[..bytes.len()].copy_from_slice(bytes);
            return self.word(u64::from_le_bytes(word));
        }
        let start = self.reserve(align, bytes.len())?;
        self.put(start, bytes);
        self.word(start as u64)
    }

    /// Adds bytes at these addresses to the output without a copy, and returns the word for them. Foreign code must have written them
    /// into one block or several adjacent blocks. Returns `None` if they are outside this extent or already part of the output.
    pub(crate) fn give(&mut self, bytes: Range<usize>) -> Option<u64> {
        let len = bytes.len();
        let place = self.foreign.as_ref()?.give(bytes)?;
        self.at.taken += len as u64;
        Some(place as u64)
    }

    /// Writes the concatenation of `rows` as [`bytes`](Self::bytes) does.
    pub(crate) fn rows<'r>(&mut self, align: usize, rows: impl Iterator<Item = &'r [u8]> + Clone) -> Result<(), Stop> {
        let len = rows.clone().map(<[u8]>::len).try_fold(0usize, usize::checked_add).ok_or(Stop::Full)?;
        if len <= INLINE {
            let mut word = Vec::with_capacity(INLINE);
            rows.for_each(|row| word.extend_from_slice(row));
            return self.bytes(align, &word);
        }
        let start = self.reserve(align, len)?;
        let mut at = start;
        for row in rows {
            self.put(at, row);
            at += row.len();
        }
        self.word(start as u64)
    }

    /// Writes the length of a text and the text.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Stop> {
        self.word(text.len() as u64)?;
        self.bytes(1, text.as_bytes())
    }

    /// Enters a list or tree. Fails if the nesting is too deep.
    pub(crate) fn enter(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}

#[cold]
fn too_deep() -> Stop {
    let text = format!("an element has more than {MAX_DEPTH} nested lists and trees");
    Error::data(text).help("flatten it before it leaves the worker").into()
}
