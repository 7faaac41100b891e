//! Words and bytes into an extent.

use super::structure::Structures;
use super::{ALIGN, HEADER, INLINE, MAX_DEPTH, block_bytes};
use crate::error::Error;

/// Why a record is not written to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The extent has no room for it.
    Full,
    /// It cannot be written at all.
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Where the next word and the next bytes go.
#[derive(Clone, Copy)]
struct At {
    /// Bytes in use from the start.
    end: usize,
    /// The next word of the table, and the last of its block, which says where the next block is.
    word: usize,
    link: usize,
    blocks: u32,
    words: u64,
}

/// A place to come back to.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    at: At,
    structures: usize,
}

/// Where a word of the table is.
#[derive(Clone, Copy)]
pub(super) struct Place(usize);

/// An extent that is being written; or none, to learn how much of one would be used.
pub(crate) struct Out<'a> {
    /// Empty where nothing but the length is wanted.
    buf: &'a mut [u8],
    capacity: usize,
    at: At,
    depth: usize,
    pub(super) structures: Structures,
}

impl<'a> Out<'a> {
    pub(super) fn new(buf: &'a mut [u8]) -> Self {
        let capacity = buf.len();
        Self::with_capacity(buf, capacity)
    }

    /// Counts and writes nothing.
    pub(super) fn measure() -> Self {
        Self::with_capacity(&mut [], usize::MAX)
    }

    fn with_capacity(buf: &'a mut [u8], capacity: usize) -> Self {
        let at = At { end: HEADER, word: 0, link: 0, blocks: 0, words: 0 };
        Self { buf, capacity, at, depth: 0, structures: Structures::default() }
    }

    /// Bytes in use.
    pub(super) fn used(&self) -> usize {
        self.at.end
    }

    /// Bytes that are not.
    pub(super) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.at.end)
    }

    /// Words in the table.
    pub(super) fn words(&self) -> u64 {
        self.at.words
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { at: self.at, structures: self.structures.len() }
    }

    /// Forgets what was written since `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.at = mark.at;
        self.depth = 0;
        self.structures.truncate(mark.structures);
    }

    /// Writes over what is there. Whoever calls it has reserved the place.
    #[inline]
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.buf.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// The start of `len` new bytes.
    #[inline]
    pub(super) fn reserve(&mut self, align: usize, len: usize) -> Result<usize, Stop> {
        let start = self.at.end.checked_next_multiple_of(align);
        let range = start.and_then(|start| Some((start, start.checked_add(len)?)));
        match range {
            Some((start, end)) if end <= self.capacity => {
                self.at.end = end;
                Ok(start)
            }
            _ => Err(Stop::Full),
        }
    }

    /// The table's next word.
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

    /// The table's next word, to [`replace`](Self::replace) later.
    pub(super) fn place(&mut self, word: u64) -> Result<Place, Stop> {
        self.word(word)?;
        Ok(Place(self.at.word - size_of::<u64>()))
    }

    /// Another word where one was written.
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

    /// Bytes whose number is known from what was written before; `align` counts for those that are not in the table.
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

    /// The same of bytes that lie in several places, one after the other.
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

    /// Text and its length.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Stop> {
        self.word(text.len() as u64)?;
        self.bytes(1, text.as_bytes())
    }

    /// One level further into lists and trees.
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
    let text = format!("an element has more than {MAX_DEPTH} lists and trees in each other");
    Error::data(text).help("flatten it before it leaves the worker").into()
}
