//! A file of records and its limits.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::content::{self, Content};
use super::super::formats::bagz::limits_path;
use super::super::numbered::Opening;
use super::frame;
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Bytes of a limit.
const LIMIT: u64 = 8;
/// First bytes of a zstd frame.
const FRAME: &[u8] = b"\x28\xb5\x2f\xfd";

/// Layout of a file of records.
pub(super) struct Shard {
    /// Total size of the records, in bytes.
    records: u64,
    limits: Limits,
    packed: bool,
}

/// Ends of records.
struct Limits {
    /// File with the limits, if it is separate.
    path: Option<PathBuf>,
    /// Offset of the first limit in its file.
    start: u64,
    bytes: Buffer,
}

impl Shard {
    /// Opens a file. Without `is_packed`, its name or its first record decides whether records are compressed.
    pub(super) fn open(file: &mut Opening, access: Access, is_packed: Option<bool>) -> Result<Self> {
        let beside = file.path.beside(limits_path);
        let limits = if let Some(content) = content::beside(&beside, access)? {
            file.id.hash ^= content.id(&beside).hash.rotate_left(1);
            Limits::separate(beside.into_path(), &content)?
        } else {
            Limits::tail(&file.content)?
        };
        let records = if limits.path.is_some() { file.content.len() } else { limits.start };
        let mut shard = Self { records, limits, packed: false };
        shard.packed = is_packed.unwrap_or_else(|| shard.is_packed(file.path.as_ref(), &file.content));
        Ok(shard)
    }

    /// Returns the place of a record in the file.
    pub(super) fn range(&self, record: u64) -> Result<Range<u64>> {
        self.limits.of(record, self.records)
    }

    pub(super) fn len(&self) -> u64 {
        self.limits.bytes.len() as u64 / LIMIT
    }

    pub(super) fn read(&self, file: &Content, record: u64) -> Result<Buffer> {
        let range = self.range(record)?;
        if range.is_empty() {
            return Ok(Buffer::EMPTY);
        }
        let start = range.start;
        let stored = file.read(range)?;
        if !self.packed {
            return Ok(stored);
        }
        let unpacked = frame::decompress(stored.as_bytes()).map_err(|e| e.offset(start));
        let is_frame = stored.as_bytes().starts_with(FRAME);
        let told = |e: Error| e.help("if the records of this file are not compressed, open it with `compressed` false");
        unpacked.map(Buffer::from_vec).map_err(|e| if is_frame { e } else { told(e) })
    }

    /// Returns true if records are zstd frames, judging by the name, or else by the first record that is not empty.
    fn is_packed(&self, path: &Path, file: &Content) -> bool {
        /// Number of records to examine.
        const LOOKED_AT: u64 = 64;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("bagz") => return true,
            Some("bag") => return false,
            _ => {}
        }
        let mut ranges = (0..self.len().min(LOOKED_AT)).filter_map(|record| self.range(record).ok());
        let first = ranges.find(|range| !range.is_empty());
        let head = first.and_then(|range| file.read(range.start..range.end.min(range.start + 4)).ok());
        head.is_some_and(|head| head.as_bytes() == FRAME)
    }
}

impl Limits {
    /// Reads the limits at the tail of the file of records. The last limit is also the offset at which the limits
    /// begin.
    fn tail(content: &Content) -> Result<Self> {
        let size = content.len();
        if size == 0 {
            return Ok(Self { path: None, start: 0, bytes: Buffer::EMPTY });
        }
        let last = size.checked_sub(LIMIT);
        let last = last.ok_or_else(|| Error::data(format!("{size} bytes, a limit alone has {LIMIT}")).offset(0))?;
        let start = limit(content.read(last..size)?.as_bytes(), 0).unwrap_or(u64::MAX);
        if start > last || !(size - start).is_multiple_of(LIMIT) {
            let text = format!("the last limit, {start}, is not where limits can begin in a file of {size} bytes");
            return Err(Error::data(text).offset(last).help("the file is cut or damaged, or its limits are elsewhere"));
        }
        Ok(Self { path: None, start, bytes: content.read(start..size)? })
    }

    /// Reads the limits from a separate file.
    fn separate(path: PathBuf, content: &Content) -> Result<Self> {
        let over = content.len() % LIMIT;
        if over != 0 {
            let text = format!("{} bytes are no whole number of limits of {LIMIT}", content.len());
            return Err(Error::data(text).path(path).offset(content.len() - over));
        }
        Ok(Self { path: Some(path), start: 0, bytes: content.whole()? })
    }

    /// Returns the place of a record. `records` is the total size of the records in bytes.
    ///
    /// Limits ascend. A limit is damaged if both limits before it are greater, or both limits after it are smaller.
    /// These neighbours are then intact.
    fn of(&self, record: u64, records: u64) -> Result<Range<u64>> {
        let limits = self.bytes.as_bytes();
        let count = limits.len() as u64 / LIMIT;
        if record >= count {
            return Err(Error::data(format!("no record {record}: there are {count}")));
        }
        // Returns the start of record `place`, which is the limit of the record before it.
        let at = |place: u64| place.checked_sub(1).map_or(0, |before| limit(limits, before).unwrap_or(records));
        let (start, end) = (at(record), at(record + 1));
        let is_below = at(record.saturating_sub(1)).min(at(record.saturating_sub(2))) > start;
        let is_above = at(record + 2).max(at(record + 3)) < end;
        if start > end || end > records || is_below || is_above {
            let text = format!("its limits are {start} and {end}, in {records} bytes of records");
            let error = Error::data(text).offset(self.start + record * LIMIT);
            return Err(self.path.iter().fold(error, |error, path| error.path(path)));
        }
        Ok(start..end)
    }
}

fn limit(limits: &[u8], record: u64) -> Option<u64> {
    let at = usize::try_from(record.checked_mul(LIMIT)?).ok()?;
    limits.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}
