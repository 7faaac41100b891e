//! Words and bytes from an extent that is not trusted.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use super::structure::{Kind, Tag};
use super::{ALIGN, HEADER, INLINE, MAGIC, MAX_DEPTH, VERSION, block_bytes};
use crate::element::{Buffer, Name, Owner};
use crate::error::{Error, ErrorKind, Result};

/// Fields of a structure.
type Fields = Rc<[(Name, Kind)]>;

/// A chunk that is being read. Each word is read only once, so a checked word stays valid if another process writes there.
pub(crate) struct In<'a> {
    pub(super) owner: &'a Arc<dyn Owner>,
    bytes: &'a [u8],
    /// Position of the next word, and of the last word of its block.
    word: usize,
    link: usize,
    blocks: u32,
    /// Number of unread words.
    left: u64,
    /// Number of values that containers may still announce. At most the total number of words.
    claims: u64,
    /// Bytes that may still be decoded by copying or row by row.
    copies: usize,
    depth: usize,
    structures: Vec<Fields>,
    text: Vec<u8>,
}

impl<'a> In<'a> {
    /// Opens a chunk of `used` bytes. Returns the reader and the number of slots.
    pub(super) fn open(owner: &'a Arc<dyn Owner>, used: usize) -> Result<(Self, usize)> {
        let all = owner.bytes();
        let bytes = all
            .get(..used)
            .ok_or_else(|| damaged(used, format!("{used} bytes are used of an extent of {}", all.len())))?;
        if all.as_ptr().align_offset(ALIGN) != 0 {
            return Err(damaged(0, format!("the extent does not start at a multiple of {ALIGN}")));
        }
        let Some(header) = bytes.get(..HEADER) else {
            return Err(damaged(used, format!("{used} bytes are used and the header has {HEADER}")));
        };
        let [magic, version, length, slots, words] = [0, 8, 16, 24, 32].map(|at| word_at(header, at));
        for (at, name, value, expected) in
            [(0, "magic number", magic, MAGIC), (8, "version", version, VERSION), (16, "length", length, used as u64)]
        {
            if value != expected {
                return Err(damaged(at, format!("the {name} is {value:#x}, expected {expected:#x}")));
            }
        }
        if words > (used / size_of::<u64>()) as u64 {
            return Err(damaged(32, format!("a table of {words} words in {used} bytes")));
        }
        let structures = Vec::new();
        let mut chunk = Self {
            owner,
            bytes,
            word: 0,
            link: 0,
            blocks: 0,
            left: words,
            claims: words,
            copies: used,
            depth: 0,
            structures,
            text: Vec::new(),
        };
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        chunk.claim(slots)?;
        Ok((chunk, slots))
    }

    /// Reads the next word of the table.
    #[inline]
    pub(crate) fn word(&mut self) -> Result<u64> {
        if self.word == self.link {
            self.block()?;
        }
        if self.left == 0 {
            return Err(self.damaged("the table ends before its last value".into()));
        }
        self.left -= 1;
        let word = word_at(self.bytes, self.word);
        self.word += size_of::<u64>();
        Ok(word)
    }

    #[cold]
    fn block(&mut self) -> Result<()> {
        let start = if self.blocks == 0 { HEADER } else { self.offset(word_at(self.bytes, self.link))? };
        let end = start.checked_add(block_bytes(self.blocks)).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.damaged(format!("a table block at {start} reaches beyond the end")))?;
        // Blocks must be in ascending order, so a chain of blocks is finite.
        if (self.blocks > 0 && start <= self.link) || start % size_of::<u64>() != 0 {
            return Err(self.damaged(format!("a table block cannot be at {start}")));
        }
        self.word = start;
        self.link = end - size_of::<u64>();
        self.blocks += 1;
        Ok(())
    }

    fn offset(&self, word: u64) -> Result<usize> {
        usize::try_from(word).map_err(|_| self.damaged(format!("the offset {word} is beyond the end")))
    }

    /// Reads a word that is a count.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<usize> {
        let word = self.word()?;
        usize::try_from(word).map_err(|_| self.damaged(format!("a length of {word}")))
    }

    /// Reads the kind of the next value.
    pub(super) fn kind(&mut self) -> Result<Kind> {
        let word = self.word()?;
        Tag(word).kind().ok_or_else(|| self.damaged(format!("there is no value of kind {word:#x}")))
    }

    /// Announces `count` values before memory for them is allocated. Each value takes a word, so the total of announced values
    /// is at most the number of words.
    #[inline]
    pub(crate) fn claim(&mut self, count: usize) -> Result<()> {
        if let Some(rest) = self.claims.checked_sub(count as u64) {
            self.claims = rest;
            Ok(())
        } else {
            Err(self.damaged(format!("{count} values are announced, and there is room for {}", self.claims)))
        }
    }

    /// Reads the word for `len` bytes: the bytes themselves, or their offset, which is checked.
    #[inline]
    pub(super) fn place(&mut self, align: usize, len: usize) -> Result<u64> {
        let word = self.word()?;
        let limit = self.bytes.len() as u64;
        if len <= INLINE || (word <= limit && len as u64 <= limit - word && word % align as u64 == 0) {
            return Ok(word);
        }
        Err(self.damaged(format!("{len} bytes at {word}, aligned to {align}, of {limit} bytes")))
    }

    /// Reads the word for `rows` of `stride` bytes. Returns their offset, which is checked.
    pub(super) fn rows(&mut self, rows: usize, stride: usize) -> Result<usize> {
        let len = rows.checked_mul(stride).filter(|&len| len > 0);
        let len = len.ok_or_else(|| self.damaged(format!("{rows} rows of {stride} bytes")))?;
        let word = self.place(ALIGN, len)?;
        let at = self.offset(word)?;
        if at.checked_add(len).is_none_or(|end| end > self.bytes.len()) {
            return Err(self.damaged(format!("{rows} rows of {stride} bytes at {at}")));
        }
        self.spend(len, word)?;
        Ok(at)
    }

    /// Deducts decoded bytes from the budget. A writer never uses the bytes of a value twice.
    fn spend(&mut self, len: usize, at: u64) -> Result<()> {
        if let Some(rest) = self.copies.checked_sub(len) {
            self.copies = rest;
            Ok(())
        } else {
            Err(self.damaged(format!("{len} bytes at {at}, again")))
        }
    }

    /// Reads `len` bytes. Returns a view in place if they do not fit in a word.
    pub(crate) fn buffer(&mut self, len: usize) -> Result<Buffer> {
        let word = self.place(ALIGN, len)?;
        Ok(if len <= INLINE { Buffer::from_word(word, len) } else { Buffer::part_of(self.owner, word as usize, len) })
    }

    /// Reads `len` bytes and passes them to `copy`.
    pub(super) fn copied<T>(&mut self, len: usize, copy: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let word = self.place(1, len)?;
        if len <= INLINE {
            return Ok(copy(&word.to_le_bytes()[..len]));
        }
        self.spend(len, word)?;
        Ok(copy(&self.bytes[word as usize..][..len]))
    }

    /// Reads a length and text. UTF-8 is checked in a private copy that no other process can change.
    pub(crate) fn text<T>(&mut self, make: impl FnOnce(&str) -> T) -> Result<T> {
        let len = self.length()?;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.copied(len, |bytes| text.extend_from_slice(bytes))?;
        let made = std::str::from_utf8(&text).map(make);
        let made = made.map_err(|e| self.damaged(format!("{len} bytes of text: {e}")));
        self.text = text;
        made
    }

    /// Reads the structure of the next tree.
    #[inline]
    pub(super) fn structure(&mut self) -> Result<Fields> {
        let id = self.length()?;
        let fields = if let Some(fields) = self.structures.get(id) { fields.clone() } else { self.define(id)? };
        self.claim(fields.len())?;
        Ok(fields)
    }

    #[cold]
    fn define(&mut self, id: usize) -> Result<Fields> {
        if id != self.structures.len() {
            return Err(self.damaged(format!("structure {id} comes up, and {} are known", self.structures.len())));
        }
        let len = self.length()?;
        self.claim(len)?;
        let mut fields = Vec::with_capacity(len);
        for _ in 0..len {
            let kind = self.kind()?;
            fields.push((self.text(|name| Name::new(name))?, kind));
        }
        if let Some(name) = twice(&fields) {
            return Err(self.damaged(format!("two fields {name:?}")));
        }
        let fields: Fields = fields.into();
        self.structures.push(fields.clone());
        Ok(fields)
    }

    /// Enters a list or tree. Fails if the nesting is too deep.
    #[inline]
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.damaged(format!("more than {MAX_DEPTH} nested lists and trees")));
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Checks that the whole table was read.
    pub(super) fn finish(&self) -> Result<()> {
        if self.left == 0 { Ok(()) } else { Err(self.damaged(format!("{} words after the last slot", self.left))) }
    }

    /// Returns an error at the last word that was read.
    #[cold]
    pub(crate) fn damaged(&self, what: String) -> Error {
        damaged(self.word.saturating_sub(size_of::<u64>()), what)
    }
}

/// Returns a name that occurs twice, if any.
fn twice(fields: &[(Name, Kind)]) -> Option<&Name> {
    let mut names = HashSet::with_capacity(fields.len());
    fields.iter().map(|(name, _)| name).find(|name| !names.insert(*name))
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cold]
fn damaged(at: usize, what: String) -> Error {
    Error::new(ErrorKind::Io, format!("a damaged chunk from a worker: {what}")).offset(at as u64)
}
