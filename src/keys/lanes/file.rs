//! Reader of an index of lanes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{END, LaneHead, MARKS, MOST_ELEMENTS, stale};
use crate::error::{Error, Result};
use crate::keys::Sums;
use crate::keys::sealed::Bytes;
use crate::mmap::{Access, Mapping};

/// Length of the trailer: offset of the directory, its hash, and [`END`].
const TRAILER: usize = 24;
/// Length of a block's entry in the directory.
const ENTRY: usize = 24;

/// Index of lanes, mapped into memory.
///
/// Opening the file checks its head and its directory. Each block is checked on its first read.
pub struct LaneFile {
    path: PathBuf,
    bytes: Bytes,
    head: LaneHead,
    seed: u64,
    lanes: Vec<Lane>,
    blocks: Vec<Block>,
    sums: Sums,
}

/// Number of elements of a lane, and the number of its first block.
type Lane = (u64, usize);

/// Directory entry of a block.
struct Block {
    bytes: Range<usize>,
    hash: u64,
    checked: AtomicBool,
}

/// Returns the number of marks of a lane with `elements` elements.
pub(super) fn marks_of(elements: u64, every: u64) -> u64 {
    elements / every.max(1)
}

impl LaneFile {
    /// Opens an index and checks its head and its directory.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be read, [`ErrorKind::Data`](crate::ErrorKind::Data) if it is truncated or
    /// damaged, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if its version is unsupported.
    pub fn open(path: impl AsRef<Path>) -> Result<Arc<Self>> {
        let path = path.as_ref();
        let mapping = Mapping::open(path, Access::Normal).map_err(stale)?;
        Self::of(path, Bytes::Mapped(mapping), Sums::Checked).map(Arc::new).map_err(|e| e.path(path))
    }

    /// Opens an index from bytes in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn of_bytes(bytes: Vec<u8>, sums: Sums) -> Result<Self> {
        Self::of(Path::new("memory"), Bytes::Held(bytes), sums)
    }

    /// Creates an index of lanes without elements.
    #[cfg(any(feature = "cli", feature = "python"))]
    pub(super) fn empty(head: LaneHead) -> Self {
        let lanes = vec![(0, 0); head.lanes as usize];
        let bytes = Bytes::Held(Vec::new());
        Self { path: PathBuf::new(), bytes, head, seed: 0, lanes, blocks: Vec::new(), sums: Sums::Checked }
    }

    fn of(path: &Path, bytes: Bytes, sums: Sums) -> Result<Self> {
        let all = bytes.all();
        let (head, seed, head_end) = LaneHead::decode(all, sums)?;
        let (lanes, blocks) = directory(all, &head, head_end, seed, sums)?;
        Ok(Self { path: path.to_owned(), bytes, head, seed, lanes, blocks, sums })
    }

    /// Returns the head, which identifies the lanes.
    pub fn head(&self) -> &LaneHead {
        &self.head
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of elements of a lane, or 0 if there is no such lane.
    pub fn elements_of(&self, lane: u64) -> u64 {
        usize::try_from(lane).ok().and_then(|lane| self.lanes.get(lane)).map_or(0, |lane| lane.0)
    }

    /// Returns the number of elements of all lanes.
    pub fn elements(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.0).sum()
    }

    /// Returns the text of mark `number` of a lane. Marks count from 1; mark `k` follows `k` times [`every`](LaneHead::every) elements.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the index is damaged or has no such mark.
    pub fn mark(&self, lane: u64, number: u64) -> Result<&str> {
        let (elements, first) =
            usize::try_from(lane).ok().and_then(|lane| self.lanes.get(lane)).copied().unwrap_or_default();
        let Some(number) = number.checked_sub(1).filter(|&number| number < marks_of(elements, self.head.every)) else {
            return Err(self.damaged(0, format!("there is no mark {number} of lane {lane}")));
        };
        let at = first + (number / MARKS) as usize;
        let text = self.block(at)?;
        let place = (number % MARKS) as usize;
        text.split('\n').nth(place).ok_or_else(|| self.damaged(at, format!("mark {number} of lane {lane} is missing")))
    }

    /// Returns the text of a block, which is checked on its first read.
    fn block(&self, at: usize) -> Result<&str> {
        let Some(block) = self.blocks.get(at) else { return Err(self.damaged(at, "there is no such block".into())) };
        let bytes = self.bytes.all().get(block.bytes.clone()).unwrap_or_default();
        if !block.checked.load(Relaxed) {
            let hash = xxh3_64_with_seed(bytes, self.seed);
            if self.sums.differ(block.hash, hash) {
                let text = format!("the hash of block {at} is {:#018x}, computed {hash:#018x}", block.hash);
                return Err(self.damaged(at, text));
            }
            block.checked.store(true, Relaxed);
        }
        std::str::from_utf8(bytes).map_err(|_| self.damaged(at, format!("block {at} is no text")))
    }

    #[cold]
    fn damaged(&self, block: usize, text: String) -> Error {
        let offset = self.blocks.get(block).map_or(0, |block| block.bytes.start as u64);
        stale(Error::data(text).path(&self.path).offset(offset))
    }
}

/// Reads the `i`-th number of `bytes`.
fn number(bytes: &[u8], i: usize) -> Option<u64> {
    let at = i.checked_mul(8)?;
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Reads the directory at the end of a file: the lanes and the blocks.
fn directory(all: &[u8], head: &LaneHead, head_end: usize, seed: u64, sums: Sums) -> Result<(Vec<Lane>, Vec<Block>)> {
    let damaged = |text: &str| stale(Error::data(text.to_owned()).offset(all.len() as u64));
    let cut = || damaged("the file is cut off, or was not written to its end");
    if !all.ends_with(END) {
        return Err(cut());
    }
    let trailer = all.len().checked_sub(TRAILER).filter(|&at| at >= head_end).ok_or_else(cut)?;
    let begin = number(&all[trailer..], 0).and_then(|at| usize::try_from(at).ok()).ok_or_else(cut)?;
    if begin < head_end || begin > trailer {
        return Err(damaged("the directory begins outside the file"));
    }
    let hash = xxh3_64_with_seed(&all[begin..trailer + 8], seed);
    if sums.differ(number(&all[trailer..], 1).unwrap_or_default(), hash) {
        return Err(damaged("the hash of the directory differs from the computed hash"));
    }
    let other = || damaged("the directory does not match the number of lanes");
    let bytes = &all[begin..trailer];
    let counts = usize::try_from(head.lanes).ok().and_then(|lanes| bytes.get(..lanes.checked_mul(8)?));
    let counts = counts.ok_or_else(other)?;
    let entries = &bytes[counts.len()..];
    let (mut lanes, mut blocks) = (Vec::new(), 0u64);
    for count in counts.chunks_exact(8) {
        let count = number(count, 0).filter(|&count| count <= MOST_ELEMENTS).ok_or_else(other)?;
        lanes.push((count, usize::try_from(blocks).map_err(|_| other())?));
        blocks = blocks.saturating_add(marks_of(count, head.every).div_ceil(MARKS));
    }
    if blocks.checked_mul(ENTRY as u64) != Some(entries.len() as u64) {
        return Err(other());
    }
    let block = |entry: &[u8]| {
        let [at, len, hash] = [0, 1, 2].map(|i| number(entry, i));
        let (at, len) = (usize::try_from(at?).ok()?, usize::try_from(len?).ok()?);
        let end = at.checked_add(len).filter(|&end| at >= head_end && end <= begin)?;
        Some(Block { bytes: at..end, hash: hash?, checked: AtomicBool::new(false) })
    };
    let blocks: Option<Vec<_>> = entries.chunks_exact(ENTRY).map(block).collect();
    Ok((lanes, blocks.ok_or_else(|| damaged("a block lies outside the file"))?))
}

debug_as!(LaneFile, |self, f| {
    write!(f, "LaneFile({}: {} lanes, {} elements)", self.path.display(), self.lanes.len(), self.elements())
});

/// Fuzz target: reads arbitrary bytes as an index of lanes. Hashes are not checked, since damage would never get past them.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz_lanes(data: &[u8]) {
    /// Maximum number of lanes that are read, and of marks per lane.
    const READ: u64 = 1000;
    let Ok(file) = LaneFile::of_bytes(data.to_vec(), Sums::Ignored) else { return };
    for lane in 0..file.head().lanes.min(READ) {
        let marks = marks_of(file.elements_of(lane), file.head().every);
        for mark in (0..=marks.min(READ)).chain([marks, marks.saturating_add(1)]) {
            if let Ok(text) = file.mark(lane, mark) {
                assert!(!text.contains('\n') && mark > 0 && mark <= marks);
            }
        }
    }
}
