//! ArrayRecord files: records of bytes, by number.
//!
//! The layout is that of [`google/array_record`](https://github.com/google/array_record) and of
//! [Riegeli](https://github.com/google/riegeli), whose container it is.

mod blocks;
mod chunk;
mod codec;
mod index;
mod layout;
mod records;
mod recovery;
#[cfg(test)]
mod tests;
#[cfg(feature = "riegeli")]
mod transposed;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use self::chunk::Chunk;
pub use self::codec::Compression;
use self::index::{Index, Place};
use self::records::Records;
pub use self::recovery::Recovery;
pub use self::writer::{ArrayRecordWriter, ArrayRecordWriterOptions};
use super::content::{self, Content};
use super::files::{self, FileId, Patterns};
use super::firsts::Firsts;
use super::mmap::{Access, prefetch};
use super::units::{Key, Units};
use crate::cores;
use crate::dataset::map::{Decoded, Many, RandomAccess, Shuffled};
use crate::dataset::{Blocks, Upcoming};
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};

/// Records of ArrayRecord files, by number: a [`RandomAccess`] source of bytes ([`Buffer`]).
///
/// Simple chunks are read, uncompressed or by brotli, zstd and snappy, with any number of records each. Transposed chunks,
/// an option of the writer for protocol buffers, are read with the feature `riegeli`, uncompressed or by zstd; without it they are
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) when a record of one is read.
///
/// ```no_run
/// use gristmill::source::ArrayRecord;
/// use gristmill::{MapDataset, dataset::map::Source};
/// let ds = Source::new(ArrayRecord::open("train-*.array_record")?).shuffle(42);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with file, record and the byte offset of the chunk; the records of other chunks are read.
/// Header and data of a chunk are held against their hashes when it is first read. A file that was cut, or whose writer was not
/// closed, has no index and is refused, unless it is told to [`recover`](ArrayRecordOptions::recover) what is there.
///
/// # Cost
/// Opening reads the footer; 16 bytes a chunk are held. Reading takes the same time in files of any size. A record that is not
/// compressed is a view of the mapped file. A chunk of several records is decoded once for all that are read at a time
/// ([`read_many`](RandomAccess::read_many)), and kept, up to [`cache_bytes`](ArrayRecordOptions::cache_bytes), for those that are read
/// next. Shuffled reading of a larger data set keeps the records that a pass asks for soon, as many as have room there, and decodes a
/// chunk once for all of those: the larger the part of the data that has room, the less often. See [`Mapping`](crate::source::Mapping) for what must not be done to the
/// files meanwhile.
pub struct ArrayRecord {
    files: Vec<File>,
    firsts: Firsts,
    /// Whether some files lie far away.
    far: bool,
    /// Whether some chunks hold several records.
    is_grouped: bool,
    units: Units<Records>,
    /// Bytes of all records in such chunks.
    decoded: u64,
    identity: String,
}

struct File {
    path: PathBuf,
    content: Content,
    index: Index,
    /// A bit for each chunk whose hashes were found right.
    checked: Vec<AtomicU64>,
    /// Where the index was lost.
    recovery: Option<Recovery>,
}

impl ArrayRecord {
    /// Opens files, globs or directories (of `.array_record` and `.arrayrecord` files).
    ///
    /// # Errors
    /// If nothing is found, or the index of a file is damaged.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> ArrayRecordOptions {
        ArrayRecordOptions::default()
    }

    /// The files whose index was lost, and what was found in them without it: see [`recover`](ArrayRecordOptions::recover).
    pub fn recovered(&self) -> impl Iterator<Item = (&Path, Recovery)> {
        self.files.iter().filter_map(|file| Some((file.path.as_path(), file.recovery?)))
    }

    /// The file that holds a record, and the place of its chunk there.
    #[inline]
    fn find(&self, index: u64) -> Result<(usize, Place)> {
        let (at, record) = self.firsts.find(index)?;
        let place = self.files[at].index.find(record);
        Ok((at, place.ok_or_else(|| Error::data("in no chunk").path(&self.files[at].path).record(record))?))
    }

    /// The files and ranges where the chunks of these records lie.
    fn parts(&self, indices: &[u64]) -> impl Iterator<Item = (usize, std::ops::Range<u64>)> {
        let place = |&index: &u64| self.find(index).ok().map(|(at, place)| (at, place.begin..place.limit));
        indices.iter().filter_map(place)
    }

    /// Brings what is mapped of these records nearer, all of them at once: one after the other, each would wait for memory by itself.
    /// Only for chunks of one record: the records of others are views of the file or decoded already, as a rule.
    fn approach(&self, indices: &[u64]) {
        /// Of a longer record the processor sees by itself what comes next.
        const MOST: u64 = 1 << 10;
        for (at, part) in self.parts(indices) {
            let end = part.end.min(part.start + MOST);
            let bytes = self.files[at].content.here().and_then(|all| all.get(part.start as usize..end as usize));
            prefetch(bytes.unwrap_or_default());
        }
    }

    /// One record.
    fn record(&self, index: u64) -> Result<Buffer> {
        let (at, place) = self.find(index)?;
        if place.records == 1 {
            return self.record_of(&self.decode(index)?, 0, index);
        }
        let key = |_| Ok(self.key(at, place, index));
        self.units.read_one(
            index,
            key,
            |index| self.decode(index),
            |records, at, index| self.record_of(records, at, index),
        )
    }

    /// The chunk of a record, and its place there.
    fn key(&self, at: usize, place: Place, index: u64) -> (Key, usize) {
        let record = index - self.firsts.before(at);
        ((at, place.chunk as u64), (record - place.first) as usize)
    }

    /// The records of the chunk of a record.
    fn decode(&self, index: u64) -> Result<Records> {
        let (at, place) = self.find(index)?;
        self.files[at].decode(place).map_err(|e| self.fault(index, e))
    }

    /// The record at `place` in the records of its chunk.
    fn record_of(&self, records: &Records, place: usize, index: u64) -> Result<Buffer> {
        let (at, _) = self.firsts.find(index)?;
        let bytes = records.record(place, &self.files[at].content).map_err(|e| self.fault(index, e))?;
        bytes.ok_or_else(|| {
            let begin = self.find(index).map_or(0, |(_, chunk)| chunk.begin);
            self.fault(index, Error::data("lies outside of its chunk").offset(begin))
        })
    }

    /// An error of a record.
    #[cold]
    fn fault(&self, index: u64, error: Error) -> Error {
        let Ok((at, record)) = self.firsts.find(index) else { return error };
        error.path(&self.files[at].path).record(record)
    }
}

impl File {
    fn open(path: PathBuf, content: Content, recover: bool) -> Result<(Self, FileId)> {
        let id = content.id(&path)?;
        let (index, recovery) = match Index::read(&content) {
            Ok(index) => (index, None),
            Err(error) if recover && error.kind() == ErrorKind::Data => {
                let (index, recovery) = recovery::recover(&content).map_err(|e| e.path(&path))?;
                tracing::warn!("{}: {}: {recovery}", path.display(), error.message());
                (index, Some(recovery))
            }
            Err(error) => return Err(error.path(&path)),
        };
        let checked = (0..index.chunks().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok((Self { path, content, index, checked, recovery }, id))
    }

    /// The records of a chunk. What its header says must be what the footer says; all else is checked before it is believed.
    fn decode(&self, place: Place) -> Result<Records> {
        let pieces = self.content.pieces(place.begin..place.limit)?;
        let chunk = Chunk::at(&pieces, place.begin, place.limit)?;
        if (chunk.records, chunk.decoded) != (place.records, place.decoded) {
            let text = format!(
                "a chunk of {} records and {} bytes, the footer says {} and {}",
                chunk.records, chunk.decoded, place.records, place.decoded
            );
            return Err(chunk.fault(text));
        }
        // Once is enough: the mapping stays what it is.
        let (word, bit) = (&self.checked[place.chunk / 64], 1 << (place.chunk % 64));
        if word.load(Relaxed) & bit == 0 {
            chunk.check_data()?;
            word.fetch_or(bit, Relaxed);
        }
        Records::decode(&chunk, self.content.here().is_some())
    }
}

/// How [`ArrayRecord`] files are opened.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct ArrayRecordOptions {
    cache_bytes: usize,
    access: Access,
    recover: bool,
}

impl Default for ArrayRecordOptions {
    fn default() -> Self {
        Self { cache_bytes: 256 << 20, access: Access::Normal, recover: false }
    }
}

impl ArrayRecordOptions {
    /// Bytes of decoded chunks, and of records out of them, that are kept; 256 MiB at first. The latest chunk is kept whatever its size.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether files without a good index are read as far as their chunks are whole; not at first. What was found and what was lost
    /// is logged as a warning, and [`recovered`](ArrayRecord::recovered) says it.
    ///
    /// Such a file is walked over chunk by chunk. Behind a damaged chunk the walk goes on where the chunk's header or the header of a
    /// block says that another begins, so that records in between are missing and later ones have lower numbers. A file whose footer is
    /// there, and only what points to it is lost, is read as if it were whole.
    ///
    /// # Cost
    /// Every byte of such a file is read and held against its hash when it is opened, and one of a store is held in memory meanwhile;
    /// files that are whole cost nothing more.
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens files, globs or directories (of `.array_record` and `.arrayrecord` files).
    ///
    /// # Errors
    /// As [`ArrayRecord::open`].
    pub fn open(self, patterns: impl Patterns) -> Result<ArrayRecord> {
        let contents = content::open_all(patterns, &[".array_record", ".arrayrecord"], self.access)?;
        self.open_contents(contents)
    }

    /// The same, of files that are in memory already.
    pub(super) fn open_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<ArrayRecord> {
        let open = |(path, content)| File::open(path, content, self.recover);
        let opened = cores::on_all(|| contents.into_par_iter().map(open).collect::<Result<Vec<_>>>())?;
        let (files, ids): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        let firsts = Firsts::of(files.iter().map(|file: &File| file.index.len()))?;
        // A file that is recovered may be read in another way by a later version.
        let recovered: u64 = files.iter().filter_map(|file| Some(file.recovery?.records)).sum();
        let recovered = if recovered > 0 { format!(", {recovered} records recovered") } else { String::new() };
        let identity = files::identity(&ids) + &recovered;
        let is_grouped = files.iter().any(|file| file.index.is_grouped());
        let decoded = files.iter().filter(|file| file.index.is_grouped()).map(|file| file.index.decoded());
        let decoded = decoded.fold(0, u64::saturating_add);
        let units = Units::new(self.cache_bytes, firsts.len(), decoded);
        let far = content::any_far(files.iter().map(|file| &file.content));
        Ok(ArrayRecord { files, firsts, far, is_grouped, units, decoded, identity })
    }
}

impl RandomAccess for ArrayRecord {
    type Record = Buffer;

    fn len(&self) -> u64 {
        self.firsts.len()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Buffer> {
        self.record(index)
    }

    /// In the order of the files, so that each chunk is decoded once.
    fn read_many(&self, indices: &[u64]) -> Many<Buffer> {
        if self.far {
            content::fetch_all(self.parts(indices), |at| &self.files[at].content);
        }
        if !self.is_grouped {
            if !self.far && !indices.is_sorted() {
                self.approach(indices);
            }
            return Many::one_by_one(indices, |index| self.record(index).map(Some));
        }
        let find = |index| self.find(index).map(|(at, place)| self.key(at, place, index));
        let read = |records: &Records, place, index| self.record_of(records, place, index);
        self.units.read_many(indices, find, |index| self.decode(index), read)
    }

    fn reads_together(&self) -> bool {
        self.far || self.is_grouped
    }

    fn reads_far(&self) -> bool {
        self.far
    }

    fn looks_ahead(&self) -> Option<u64> {
        self.reads_together().then(|| self.units.looks_ahead(self.far))
    }

    fn will_read(&self, next: Upcoming<'_>) {
        self.units.tell(next, |index| self.find(index).ok().map(|(at, place)| self.key(at, place, index)));
        if self.far {
            content::will_read(self.parts(next.indices()), next, |at| &self.files[at].content);
        }
    }

    fn place(&self, index: u64) -> Option<(PathBuf, u64)> {
        let (at, record) = self.firsts.find(index).ok()?;
        Some((self.files[at].path.clone(), record))
    }

    fn take_decoded(&self) -> Option<Decoded> {
        self.units.take_decoded()
    }

    fn blocks(&self) -> Option<Blocks> {
        if !self.is_grouped {
            return None;
        }
        self.units.blocks(self.files.iter().flat_map(|file| file.index.records_of_chunks()))
    }

    fn if_shuffled(&self) -> Option<Shuffled> {
        self.units.if_shuffled(self.files.iter().map(|file| file.index.chunks() as u64).sum())
    }

    fn name(&self) -> &'static str {
        "array_record"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Buffer) -> u64 {
        record.len() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        let indices: usize = self.files.iter().map(|file| file.index.memory()).sum();
        Some(self.decoded.min(self.units.budget() as u64).saturating_add(indices as u64))
    }
}

impl fmt::Debug for ArrayRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrayRecord({} records, {} files)", self.len(), self.files.len())
    }
}
