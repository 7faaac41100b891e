//! Files mapped into memory, read-only.
#![expect(unsafe_code, reason = "a mapping is memory that other processes could change; see `Mapping`")]

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use memmap2::Mmap;

use crate::error::{Error, ErrorKind, Result};
use crate::units::Bytes;

/// Way in which a mapped file will be read: a hint to the system, without effect on the data.
///
/// With `Normal`, a pass over a [part](crate::part) that evaluates no more than half of all rows asks for the pages of its own elements before it touches
/// them, and the system reads none around them. Other passes over the same files are read as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// The system decides how far to read ahead.
    #[default]
    Normal,
    /// Front to back: read far ahead.
    Sequential,
    /// Anywhere: do not read ahead. For shuffled reading of files larger than memory.
    Random,
}

/// A regular file mapped into memory, read-only, for as long as this lives.
///
/// # The user's part
/// **Do not change a file while it is read.** Nothing in an operating system stops another process from writing to or
/// truncating a mapped file. Overwritten bytes may then be seen torn, which no check here can rule out, and reading behind a truncated end stops the
/// process (`SIGBUS`). Replace a file by renaming a new one over it: a mapping keeps the old one.
pub struct Mapping {
    map: Option<Mmap>,
    access: Access,
}

impl Mapping {
    /// Maps the whole file. A file of 0 bytes is an empty mapping.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be opened or mapped, [`ErrorKind::Unsupported`] if it is not a regular file.
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<Self> {
        Self::open_file(path.as_ref(), access).map(|(mapping, _)| mapping)
    }

    /// The same, and the open file.
    pub(crate) fn open_file(path: &Path, access: Access) -> Result<(Self, File)> {
        let file = crate::regular::open(path)?;
        let metadata = file.metadata().map_err(|e| Error::io(e, path))?;
        if usize::try_from(metadata.len()).is_err() {
            return Err(Error::new(ErrorKind::Io, format!("{} cannot be mapped", Bytes(metadata.len()))).path(path));
        }
        // The system refuses to map nothing.
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

    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Has the system bring the pages of these bytes into memory. When they are touched then, it reads nothing around them, as it would otherwise.
    /// A file that the user has opened with another [`Access`] than `Normal` is left as it is.
    pub(crate) fn bring(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let (Some(map), Access::Normal) = (&self.map, self.access)
            && range.start < range.end
            && range.end <= map.len()
        {
            // A hint that the system does not take changes nothing.
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
    // A hint that the system does not take changes nothing.
    let _ = map.advise(advice);
}

#[cfg(not(unix))]
fn advise(_: &Mmap, _: Access) {}

/// Asks the processor to bring `bytes` into its cache. It changes nothing but the time that reading them takes.
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

/// Asks the processor for the places of the pages that `bytes` lie in: where a large file is read anywhere, looking those up
/// takes as long as reading.
#[inline]
pub(crate) fn prefetch_pages(bytes: &[u8]) {
    /// Of the system; where its pages are larger, a place is asked for twice.
    const PAGE: usize = 4096;
    /// A processor remembers only so many.
    const MOST: usize = 16;
    for page in bytes.chunks(PAGE).take(MOST) {
        prefetch(&page[..1]);
    }
    prefetch(bytes.last().map(std::slice::from_ref).unwrap_or_default());
}

impl fmt::Debug for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapping({} bytes)", self.bytes().len())
    }
}

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
