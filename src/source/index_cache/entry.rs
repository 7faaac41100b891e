//! Entries that cache files have of an index in front of the places themselves.

use std::fs;
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use super::{IndexCache, Records, number};
use crate::element::Buffer;
use crate::place::Location;
use crate::source::content::Content;
use crate::source::files::FileId;
use crate::source::starts::{Facts, Starts};

/// Key of a file: what an index must have been made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) records: Records,
    pub(super) size: u64,
    /// A hash of when it was changed.
    pub(super) changed: u64,
    pub(super) sample: u64,
}

impl Key {
    /// The key of a file; `None` for one of which nothing tells whether it is still what it was.
    pub(super) fn of(file: &Location, content: &Content, id: &FileId, records: Records) -> Option<Self> {
        let (changed, sample) = match file {
            Location::Local(path) => (changed(&fs::metadata(path).ok()?)?, id.hash),
            // By its whole URL, and the version, which says when it changed.
            Location::Object(_) => (0, content.known_as()?),
        };
        Some(Self { records, size: id.size, changed, sample })
    }

    /// Whether the file is worth a cache file of its own.
    pub(super) fn is_large(&self) -> bool {
        self.size >= IndexCache::MIN_BYTES
    }
}

/// Entry of an index: what it was made for, and what was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// Records.
    pub(super) len: u64,
    pub(super) pages: u64,
    pub(super) blanks: u64,
    /// Of the index.
    pub(super) hash: u64,
}

impl Entry {
    /// 8 numbers: what starts there, size, changed, sample, records, pages, blanks, hash.
    pub(super) const BYTES: usize = 64;

    pub(super) fn of(key: &Key, starts: &Starts) -> Self {
        let pages = starts.parts().0.len() as u64;
        Self { key: *key, len: starts.len(), pages, blanks: starts.facts().blanks, hash: starts.hash() }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Key { records, size, changed, sample } = self.key;
        let numbers = [records.number(), size, changed, sample, self.len, self.pages, self.blanks, self.hash];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The one that stands there, if it is one.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let number = |i| number(bytes, i);
        let records = Records::of(number(0))?;
        let key = Key { records, size: number(1), changed: number(2), sample: number(3) };
        Some(Self { key, len: number(4), pages: number(5), blanks: number(6), hash: number(7) })
    }

    /// The index of these parts, if it is that which was found.
    pub(super) fn starts(&self, pages: Vec<u64>, lows: Buffer) -> Option<Starts> {
        let keep_blank = self.key.records == Records::AllLines;
        let starts = Starts::new(pages, lows, Facts { size: self.key.size, keep_blank, blanks: self.blanks });
        (starts.hash() == self.hash).then_some(starts)
    }
}

/// A hash of when a file was changed: of the time that it says, and of the time that the system noted, which nobody sets. So a file
/// whose bytes were replaced and whose time was set back is known for another, and so is a copy.
fn changed(metadata: &fs::Metadata) -> Option<u64> {
    let said = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let mut hasher = Xxh3::new();
    hasher.update(&said.as_nanos().to_le_bytes());
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        [metadata.ctime(), metadata.ctime_nsec()].iter().for_each(|part| hasher.update(&part.to_le_bytes()));
    }
    Some(hasher.digest())
}
