//! The index of one large file, in a separate cache file.

use std::io::Write;
use std::path::PathBuf;

use super::entry::{Entry, Key};
use super::{bytes_of, store};
use crate::element::Buffer;
use crate::error::Result;
use crate::source::starts::Starts;

const MAGIC: &[u8; 8] = b"gmlines1";
/// Magic and an entry. The pages (`u64` each) and the starts (`u32` each) fill the rest of the file.
const HEADER: usize = MAGIC.len() + Entry::BYTES;

/// Loads the index of `key` from the cache file `at`, or calls `find` and caches the result there.
///
/// # Errors
/// The errors of `find`.
pub(super) fn load_or_find(at: Option<PathBuf>, key: &Key, find: impl FnOnce() -> Result<Starts>) -> Result<Starts> {
    let Some(at) = at else { return find() };
    if let Some(starts) = bytes_of(&at).and_then(|file| decode(&file, key)) {
        return Ok(starts);
    }
    let starts = find()?;
    store(&at, |file| {
        let (pages, lows) = starts.parts();
        file.write_all(MAGIC)?;
        file.write_all(&Entry::of(key, &starts).to_bytes())?;
        file.write_all(bytemuck::cast_slice(pages))?;
        file.write_all(lows.as_bytes())
    });
    Ok(starts)
}

/// Reads the entry at the start of a cache file.
pub(crate) fn entry(bytes: &[u8]) -> Option<Entry> {
    Entry::from_bytes(bytes.strip_prefix(MAGIC)?)
}

/// Reads the index in a cache file. Returns `None` unless its key is `key`, and its length and hash are correct.
pub(crate) fn decode(file: &Buffer, key: &Key) -> Option<Starts> {
    let bytes = file.as_bytes();
    let entry = entry(bytes).filter(|entry| entry.key == *key)?;
    let pages_end = usize::try_from(entry.pages.checked_mul(8)?.checked_add(HEADER as u64)?).ok()?;
    let end = usize::try_from(entry.len.checked_mul(4)?).ok()?.checked_add(pages_end)?;
    if end != bytes.len() {
        return None;
    }
    let pages = bytes[HEADER..pages_end].as_chunks().0.iter().map(|page| u64::from_le_bytes(*page));
    entry.starts(pages.collect(), file.slice(pages_end..end)?)
}
