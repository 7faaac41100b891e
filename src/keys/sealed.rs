//! Frame that key files and indices of lanes have in common: a line of text that begins them, with its hash behind it, and the memory that they are read from.

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::Sums;
use crate::error::{Error, Result};
use crate::mmap::Mapping;

/// Bytes of the hash behind the line.
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

/// The line of `head` with its hash behind it, and that hash.
pub(super) fn seal(head: &impl Serialize) -> (Vec<u8>, u64) {
    let mut line = serde_json::to_vec(head).expect("strings and numbers serialise");
    line.push(b'\n');
    let hash = xxh3_64(&line);
    line.extend(hash.to_le_bytes());
    (line, hash)
}

/// Line that a file begins with.
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    pub(super) hash: u64,
    /// The offset behind its hash.
    pub(super) end: usize,
}

/// The line at the beginning of `bytes`, of a file that is `what` and begins with `beginning`; `stale` adds what is to be done with another.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if there is none, or it is damaged.
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

/// The first place where two lists differ, and what stands there.
pub(super) fn first_that_differs<'a>(theirs: &'a [String], ours: &'a [String]) -> Option<(usize, &'a str, &'a str)> {
    let at = theirs.iter().zip(ours).position(|(a, b)| a != b);
    let at = at.or_else(|| (theirs.len() != ours.len()).then_some(theirs.len().min(ours.len())))?;
    let line = |lines: &'a [String]| lines.get(at).map_or("nothing", String::as_str);
    Some((at, line(theirs), line(ours)))
}
