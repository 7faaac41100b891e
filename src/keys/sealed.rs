//! Common framing of key files and indices of lanes: a line of text and its hash. Also the memory of the file.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::Sums;
use crate::error::{Error, Result};
use crate::mmap::Mapping;

/// Length of the hash after the line.
pub(super) const HASH: usize = 8;

/// Memory that holds a file.
pub(super) enum Bytes {
    Mapped(Mapping),
    #[cfg(any(test, fuzzing, feature = "cli", feature = "python"))]
    Held(Vec<u8>),
}

impl Bytes {
    #[inline]
    pub(super) fn all(&self) -> &[u8] {
        match self {
            Self::Mapped(mapping) => mapping.bytes(),
            #[cfg(any(test, fuzzing, feature = "cli", feature = "python"))]
            Self::Held(bytes) => bytes,
        }
    }
}

/// Returns `head` as a line followed by its hash, and the hash.
pub(super) fn seal(head: &impl Serialize) -> (Vec<u8>, u64) {
    let mut line = serde_json::to_vec(head).expect("strings and numbers serialise");
    line.push(b'\n');
    let hash = xxh3_64(&line);
    line.extend(hash.to_le_bytes());
    (line, hash)
}

/// Line at the start of a file.
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) hash: u64,
    /// Offset after the hash.
    pub(super) end: usize,
}

/// Reads the line at the start of `bytes`, which must begin with `beginning`.
///
/// In errors, `what` names the kind of file, and `stale` adds the remedy.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if the line is missing or damaged.
pub(super) fn unseal<'a>(
    bytes: &'a [u8],
    beginning: &[u8],
    what: &str,
    sums: Sums,
    stale: fn(Error) -> Error,
) -> Result<Line<'a>> {
    let damaged = |text: String| stale(Error::data(text).offset(0));
    if !bytes.starts_with(beginning) {
        return Err(damaged(format!("is no {what}: its first bytes are others")));
    }
    let cut = || damaged("the head is cut off".into());
    let end = memchr::memchr(b'\n', bytes).ok_or_else(cut)? + 1;
    let (text, rest) = bytes.split_at(end);
    let (written, hash) = (u64::from_le_bytes(*rest.first_chunk().ok_or_else(cut)?), xxh3_64(text));
    if sums.differ(written, hash) {
        return Err(damaged(format!("the hash of the head is {written:#018x}, computed {hash:#018x}")));
    }
    Ok(Line { text, hash, end: end + HASH })
}

/// Returns the first index at which two lists differ, with both entries; `nothing` replaces a missing entry.
pub(super) fn first_that_differs<'a>(theirs: &'a [String], ours: &'a [String]) -> Option<(usize, &'a str, &'a str)> {
    let at = theirs.iter().zip(ours).position(|(a, b)| a != b);
    let at = at.or_else(|| (theirs.len() != ours.len()).then_some(theirs.len().min(ours.len())))?;
    let line = |lines: &'a [String]| lines.get(at).map_or("nothing", String::as_str);
    Some((at, line(theirs), line(ours)))
}
