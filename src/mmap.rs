//! Files mapped into memory, read-only.
#![expect(unsafe_code, reason = "other processes could change a mapping; see `Mapping`")]

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, ErrorKind, Result};
use crate::units::Bytes;

/// The access pattern of a mapped file: a hint to the system without effect on the data.
///
/// With `Normal`, a pass over a [part](crate::part) requests the pages of its elements before touching them, if it
/// evaluates at most half of all rows. The system then reads no surrounding pages. Other passes over the files use the
/// system's default read-ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// Lets the system decide how far to read ahead.
    #[default]
    Normal,
    /// Reads far ahead, for reads from front to back.
    Sequential,
    /// Does not read ahead. For shuffled reads of files larger than memory.
    Random,
}

/// A regular file mapped into memory, read-only, until the mapping is dropped.
///
/// # The user's part
/// **Do not change a file while it is read.** Operating systems do not stop another process from writing to or
/// truncating a mapped file. Reads may then return partly overwritten bytes, which no check here can rule out, and a read
/// past a truncated end kills the process (`SIGBUS`). To replace a file, rename a new file over it: a mapping keeps the
/// old file.
pub struct Mapping {
    map: Option<Mmap>,
    access: Access,
}

impl Mapping {
    /// Maps the whole file. A file of 0 bytes is an empty mapping.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file cannot be opened or mapped, [`ErrorKind::Unsupported`] if it is not a regular file.
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<Self> {
        Self::open_file(path.as_ref(), access).map(|(mapping, _)| mapping)
    }

    /// Works like [`open`](Self::open), and also returns the open file.
    pub(crate) fn open_file(path: &Path, access: Access) -> Result<(Self, File)> {
        let file = crate::regular::open(path)?;
        let metadata = file.metadata().map_err(|e| Error::io(e, path))?;
        if usize::try_from(metadata.len()).is_err() {
            return Err(Error::new(ErrorKind::Io, format!("{} cannot be mapped", Bytes(metadata.len()))).path(path));
        }
        // The system refuses to map 0 bytes.
        if metadata.len() == 0 {
            return Ok((Self { map: None, access }, file));
        }
        // SAFETY: the mapping is private to reading and lives in `self`. That no one changes the file meanwhile is the
        // user's part, stated above; every value read from it is checked before use, and used as it was read. A change meanwhile
        // is undefined for a slice all the same: bad data most likely, and no promise.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(e, path))?;
        advise(&map, access);
        Ok((Self { map: Some(map), access }, file))
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Requests that the system load the pages of `range`. Touching these pages later triggers no read-ahead of surrounding
    /// pages. Has no effect on a file opened with an [`Access`] other than `Normal`.
    pub(crate) fn bring(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let (Some(map), Access::Normal) = (&self.map, self.access)
            && range.start < range.end
            && range.end <= map.len()
        {
            // A refused hint has no effect.
            let _ = map.advise_range(memmap2::Advice::WillNeed, range.start, range.end - range.start);
        }
        #[cfg(not(unix))]
        let _ = (range, self.access);
    }
}

#[cfg(unix)]
fn advise(map: &Mmap, access: Access) {
    let advice = match access {
        Access::Normal => return,
        Access::Sequential => memmap2::Advice::Sequential,
        Access::Random => memmap2::Advice::Random,
    };
    // A refused hint has no effect.
    let _ = map.advise(advice);
}

#[cfg(not(unix))]
fn advise(_: &Mmap, _: Access) {}

/// Prefetches `bytes` into the processor's cache. Affects only the time of later reads.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint by address, of which no value is read; the address is that of a live byte.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Prefetches the address translations of the pages of `bytes`. In random reads of a large file, translations take as
/// long as the reads.
#[inline]
pub(crate) fn prefetch_pages(bytes: &[u8]) {
    /// Page size of the system. If pages are larger, some translations are requested twice.
    const PAGE: usize = 4096;
    /// Maximum number of pages, because a processor caches few translations.
    const MOST: usize = 16;
    for page in bytes.chunks(PAGE).take(MOST) {
        prefetch(&page[..1]);
    }
    prefetch(bytes.last().map(std::slice::from_ref).unwrap_or_default());
}

debug_as!(Mapping, |self, f| write!(f, "Mapping({} bytes)", self.bytes().len()));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_what_is_there_and_refuses_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"hello").unwrap();
        for access in [Access::Normal, Access::Sequential, Access::Random] {
            let mapping = Mapping::open(&path, access).unwrap();
            for range in [0..5, 1..2, 3..3, 4..6, 9..12, 0..usize::MAX] {
                mapping.bring(range);
            }
            assert_eq!(mapping.bytes(), b"hello");
        }
        std::fs::write(&path, b"").unwrap();
        assert_eq!(Mapping::open(&path, Access::Normal).unwrap().bytes(), b"");
        assert_eq!(Mapping::open(dir.path(), Access::Normal).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Mapping::open(dir.path().join("b"), Access::Normal).unwrap_err().kind(), ErrorKind::Io);
    }
}
