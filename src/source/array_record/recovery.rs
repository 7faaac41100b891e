//! Recovery of a file without an index: a truncated file, or a file whose writer was not closed.

use super::super::content::Content;
use super::super::pieces::Pieces;
use super::blocks::end_of_chunk;
use super::chunk::{Chunk, Head, METADATA, PADDING, SIGNATURE, hash};
use super::index::{Entry, FIRST_CHUNK, Index};
use super::layout::{BLOCK, BLOCK_HEADER};
use crate::element::Buffer;
use crate::error::Result;
use crate::source::checksums;

/// Outcome of reading an ArrayRecord file without its index: the records found and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Records that were found.
    pub records: u64,
    /// Chunks that were found.
    pub chunks: u64,
    /// Records known to be lost: records of damaged chunks with valid headers. More records may be lost.
    pub lost_records: u64,
    /// Chunks known to be lost. If a header is damaged too, everything up to the next valid chunk counts as a single
    /// chunk.
    pub lost_chunks: u64,
    /// Bytes of the file that were skipped.
    pub lost_bytes: u64,
}

display_as!(Recovery, |self, f| {
    let Self { records, chunks, lost_records, lost_chunks, lost_bytes } = self;
    write!(
        f,
        "{records} records in {chunks} chunks were found without the index; {lost_chunks} chunks or more of \
         {lost_records} records or more were lost, in {lost_bytes} bytes"
    )
});

/// Scan over the chunks of a file.
struct Walk<'a> {
    content: &'a Content,
    bytes: &'a [u8],
    file: &'a Pieces<'a>,
    entries: Vec<Entry>,
    counts: Vec<u64>,
    found: Recovery,
}

/// Returns an index of the intact chunks, in order. If only the postscript is lost, returns the file's own index.
///
/// # Errors
/// Data, if the file does not begin with the format's signature, or holds more than 2^64 records.
pub(super) fn recover(content: &Content) -> Result<(Index, Recovery)> {
    let whole: Buffer = content.whole()?;
    let (content, size) = (&Content::from(whole.clone()), whole.len() as u64);
    let (bytes, file) = (whole.as_bytes(), &Pieces::All(whole.as_bytes()));
    let signature = Chunk::at(file, 0, size)?;
    if signature.kind != SIGNATURE {
        return Err(signature.fault("no signature of a Riegeli file"));
    }
    let mut walk = Walk { content, bytes, file, entries: Vec::new(), counts: Vec::new(), found: Recovery::default() };
    let mut at = FIRST_CHUNK;
    while at < size {
        at = match walk.chunk(at) {
            Step::To(next) => next,
            Step::Index(index) => {
                let found = Recovery { records: index.len(), chunks: index.chunks() as u64, ..Recovery::default() };
                return Ok((index, found));
            }
        };
    }
    let Walk { entries, counts, found, .. } = walk;
    Ok((Index::of_chunks(entries, &counts, size)?, found))
}

enum Step {
    To(u64),
    Index(Index),
}

impl Walk<'_> {
    /// Processes the chunk at `at`, or skips the damage up to the next chunk.
    fn chunk(&mut self, at: u64) -> Step {
        let (file, size) = (self.file, self.bytes.len() as u64);
        let Ok(head) = Head::at(file, at, size) else { return self.lose(at, None, 0) };
        // A chunk never has more records than bytes. A chunk with one record more than the chunks found may be the
        // footer.
        let known = head.records <= size - at && head.records != self.found.chunks + 1;
        let records = if known { head.records } else { 0 };
        let inside = end_of_chunk(at, head.size, head.records).filter(|&end| end <= size);
        let chunk = Chunk::at(file, at, size).ok().filter(|chunk| chunk.check_data().is_ok());
        let (Some(end), Some(chunk)) = (inside, chunk) else {
            // A valid header still gives the chunk's end and number of records.
            return self.lose(at, inside, records);
        };
        match chunk.kind {
            SIGNATURE | METADATA | PADDING => {}
            _ if at.is_multiple_of(BLOCK) && Index::footer_offset(self.content, at).is_ok() => {}
            _ => {
                if let Some(index) = self.index(&chunk, end) {
                    return Step::Index(index);
                }
                self.entries.push(Entry { begin: at, decoded: chunk.decoded });
                self.counts.push(chunk.records);
                self.found.records += chunk.records;
                self.found.chunks += 1;
            }
        }
        Step::To(end)
    }

    /// Skips damage: to `end` if it is known, else to the next chunk that a block header points to.
    fn lose(&mut self, at: u64, end: Option<u64>, records: u64) -> Step {
        let next = end.unwrap_or_else(|| next_known(self.bytes, at));
        self.found.lost_chunks += 1;
        self.found.lost_records += records;
        self.found.lost_bytes += next - at;
        Step::To(next)
    }

    /// Returns the index if the chunk is its footer. The footer must list exactly the chunks found, or more if chunks
    /// were lost. No records may follow the footer.
    fn index(&self, chunk: &Chunk<'_>, end: u64) -> Option<Index> {
        let (announced, found) = (chunk.records.checked_sub(1)?, self.found.chunks);
        let fits = announced == found || (announced > found && self.found.lost_chunks > 0);
        let behind = || {
            let size = self.bytes.len() as u64;
            Head::at(self.file, end, size).map_or(true, |head| head.kind == PADDING)
        };
        if !fits || !behind() { None } else { Index::of_footer(self.content, chunk.begin, end).ok() }
    }
}

/// Returns the first chunk after `at` that a block header points to, or the end of the file if there is none.
fn next_known(file: &[u8], at: u64) -> u64 {
    let mut block = at;
    loop {
        let Some(next) = (block + 1).checked_next_multiple_of(BLOCK).filter(|&next| next < file.len() as u64) else {
            return file.len() as u64;
        };
        block = next;
        if let Some(chunk) = told_by(file, block) {
            return chunk;
        }
    }
}

/// Returns the chunk that begins at the block header at `block`, or else the chunk after the interrupted chunk.
fn told_by(file: &[u8], block: u64) -> Option<u64> {
    let header = file.get(block as usize..)?.get(..BLOCK_HEADER as usize)?;
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    let (stored, before, after) = (word(0), word(8), word(16));
    if stored != hash([&header[8..]]) && checksums::are_checked() {
        return None;
    }
    let chunk = if before == 0 { block } else { block.checked_add(after)? };
    (chunk >= block && chunk < file.len() as u64).then_some(chunk)
}
