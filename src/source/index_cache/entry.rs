//! The header that a cache file stores for each index.

use std::fs;
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use super::{IndexCache, Records, number};
use crate::element::Buffer;
use crate::place::Location;
use crate::source::content::Content;
use crate::source::files::FileId;
use crate::source::starts::{Facts, Starts};

/// Identity of an indexed file. An index is valid only for a file with an equal key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) records: Records,
    pub(super) size: u64,
    /// Hash of the file's modification and change times; 0 for objects.
    pub(super) changed: u64,
    pub(super) sample: u64,
}

impl Key {
    /// Returns the key of a file, or `None` if a file has no readable times or an object has no version.
    pub(super) fn of(file: &Location, content: &Content, id: &FileId, records: Records) -> Option<Self> {
        let (changed, sample) = match file {
            Location::Local(path) => (changed(&fs::metadata(path).ok()?)?, id.hash),
            // The sample hashes the URL and the version. A changed object has a new version, so `changed` is 0.
            Location::Object(_) => (0, content.known_as()?),
        };
        Some(Self { records, size: id.size, changed, sample })
    }

    /// Returns true if the file is large enough for a separate cache file.
    pub(super) fn is_large(&self) -> bool {
        self.size >= IndexCache::MIN_BYTES
    }
}

/// Header of an index: the key of its file, and counts and a hash to verify the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// Number of records.
    pub(super) len: u64,
    pub(super) pages: u64,
    pub(super) blanks: u64,
    /// Hash of the index.
    pub(super) hash: u64,
}

impl Entry {
    /// Size of an entry, 8 numbers: kind of records, size, changed, sample, records, pages, blanks, hash.
    pub(super) const BYTES: usize = 64;

    pub(super) fn of(key: &Key, starts: &Starts) -> Self {
        let pages = starts.parts().0.len() as u64;
        Self { key: *key, len: starts.len(), pages, blanks: starts.facts.blanks, hash: starts.hash }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Key { records, size, changed, sample } = self.key;
        let numbers = [records.number(), size, changed, sample, self.len, self.pages, self.blanks, self.hash];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Reads an entry from the start of `bytes`. Returns `None` if it is truncated or its kind of records is unknown.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::BYTES)?;
        let number = |i| number(bytes, i);
        let records = Records::of(number(0))?;
        let key = Key { records, size: number(1), changed: number(2), sample: number(3) };
        Some(Self { key, len: number(4), pages: number(5), blanks: number(6), hash: number(7) })
    }

    /// Builds the index from these parts. Returns `None` if its hash differs from the stored hash.
    pub(super) fn starts(&self, pages: Vec<u64>, lows: Buffer) -> Option<Starts> {
        let keep_blank = self.key.records == Records::AllLines;
        let starts = Starts::new(pages, lows, Facts { size: self.key.size, keep_blank, blanks: self.blanks });
        (starts.hash == self.hash).then_some(starts)
    }
}

/// Hashes the modification time of a file and, on Unix, its change time, which programs cannot set.
///
/// The hash therefore differs for a copy, and for a file that was rewritten with its modification time restored.
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
