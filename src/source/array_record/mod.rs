//! ArrayRecord files: records of bytes, by number.
//!
//! The layout is that of [`google/array_record`](https://github.com/google/array_record) and of
//! [Riegeli](https://github.com/google/riegeli), whose container it is.

mod blocks;
mod chunk;
mod codec;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(in crate::source) mod fuzz;
mod index;
mod layout;
mod records;
mod recovery;
#[cfg(test)]
mod tests;
#[cfg(feature = "riegeli")]
mod transposed;
mod writer;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use self::chunk::Chunk;
pub use self::codec::Compression;
use self::index::{Index, Place};
use self::records::Records;
pub use self::recovery::Recovery;
pub use self::writer::{ArrayRecordWriter, ArrayRecordWriterOptions};
use super::content::{self, Contents};
use super::files::Patterns;
use super::formats::Format;
use super::numbered::{File, Files, Grouped, GroupedFiles, Numbered, Opening, named_source, source_options};
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::mmap::{Access, prefetch};

/// Records of ArrayRecord files, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of bytes ([`Buffer`]).
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
/// ([`read_many`](crate::dataset::map::RandomAccess::read_many)), and kept, up to [`cache_bytes`](ArrayRecordOptions::cache_bytes), for those that are read
/// next. Shuffled reading of a larger data set keeps the records that a pass asks for soon, as many as have room there, and decodes a
/// chunk once for all of those: the larger the part of the data that has room, the less often. See [`Mapping`](crate::source::Mapping) for what must not be done to the
/// files meanwhile.
pub struct ArrayRecord(GroupedFiles<Chunks>);

/// Knowledge of a file.
struct Known {
    chunks: Index,
    /// A bit for each chunk whose hashes were found right.
    checked: Vec<AtomicU64>,
    /// Outcome of a recovery, where the index was lost.
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

    /// The files whose index was lost, and what was found in them without it: see [`recover`](ArrayRecordOptions::recover).
    pub fn recovered(&self) -> impl Iterator<Item = (&Path, Recovery)> {
        self.0.files().iter().filter_map(|file| Some((file.path.as_ref(), file.index.recovery?)))
    }
}

impl Known {
    fn open(file: &Opening, recover: bool) -> Result<Self> {
        let (chunks, recovery) = match Index::read(&file.content) {
            Ok(chunks) => (chunks, None),
            Err(error) if recover && error.kind() == ErrorKind::Data => {
                let (chunks, recovery) = recovery::recover(&file.content)?;
                tracing::warn!(
                    "{}: {}: {recovery}",
                    crate::place::shown(file.path.as_ref()).display(),
                    error.message()
                );
                (chunks, Some(recovery))
            }
            Err(error) => return Err(error),
        };
        let checked = (0..chunks.chunks().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { chunks, checked, recovery })
    }
}

impl File<Known> {
    /// Finds the chunk of a record.
    #[inline]
    fn chunk(&self, record: u64) -> Result<Place> {
        self.index.chunks.find(record).ok_or_else(|| Error::data("in no chunk"))
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
        let (word, bit) = (&self.index.checked[place.chunk / 64], 1 << (place.chunk % 64));
        if word.load(Relaxed) & bit == 0 {
            chunk.check_data()?;
            word.fetch_or(bit, Relaxed);
        }
        Records::decode(&chunk, self.content.here().is_some())
    }

    /// An error of a record that is not where it should be.
    #[cold]
    fn outside(&self, record: u64) -> Error {
        Error::data("lies outside of its chunk").offset(self.chunk(record).map_or(0, |chunk| chunk.begin))
    }
}

/// Options with which [`ArrayRecord`] files are opened.
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

source_options!(ArrayRecordOptions of ArrayRecord, access at access);

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

    /// Opens files, globs or directories (of `.array_record` and `.arrayrecord` files).
    ///
    /// # Errors
    /// As [`ArrayRecord::open`].
    pub fn open(self, patterns: impl Patterns) -> Result<ArrayRecord> {
        let contents = content::open_all(patterns, Format::ArrayRecord.endings(), self.access)?;
        self.open_contents(contents)
    }

    /// The same, of files that are in memory already.
    pub(super) fn open_contents(self, contents: Contents) -> Result<ArrayRecord> {
        let mut files = Files::open(Chunks::default(), contents, |_, file| Known::open(file, self.recover))?;
        files.format.recovered = files.files().iter().filter_map(|file| Some(file.index.recovery?.records)).sum();
        Ok(ArrayRecord(GroupedFiles::new(files, self.cache_bytes)))
    }
}

/// Reader of records.
#[derive(Default)]
struct Chunks {
    /// Records that were recovered: of a later version these may be others.
    recovered: u64,
}

impl Numbered for Chunks {
    type Record = Buffer;
    type Index = Known;

    const NAME: &'static str = "array_record";

    fn len(&self, file: &File<Known>) -> u64 {
        file.index.chunks.len()
    }

    #[inline]
    fn read(&self, file: &File<Known>, record: u64) -> Result<Buffer> {
        let chunk = file.chunk(record)?;
        self.take(file, &file.decode(chunk)?, (record - chunk.first) as usize, record)
    }

    fn ranges(&self, file: &File<Known>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        file.chunk(record).ok().map(|chunk| chunk.begin..chunk.limit)
    }

    fn params(&self) -> String {
        if self.recovered > 0 { format!(", {} records recovered", self.recovered) } else { String::new() }
    }

    fn index_bytes(known: &Known) -> Option<u64> {
        Some(known.chunks.memory() as u64)
    }
}

impl Grouped for Chunks {
    type Unit = Records;

    fn is_grouped(&self, file: &File<Known>) -> bool {
        file.index.chunks.is_grouped()
    }

    fn decoded_bytes(&self, file: &File<Known>) -> u64 {
        file.index.chunks.decoded()
    }

    fn units(&self, file: &File<Known>) -> impl Iterator<Item = u64> {
        file.index.chunks.records_of_chunks()
    }

    #[inline]
    fn unit(&self, file: &File<Known>, record: u64) -> Option<(u64, usize)> {
        let chunk = file.index.chunks.find(record)?;
        Some((chunk.chunk as u64, (record - chunk.first) as usize))
    }

    fn decode(&self, file: &File<Known>, record: u64) -> Result<Records> {
        file.decode(file.chunk(record)?)
    }

    #[inline]
    fn take(&self, file: &File<Known>, records: &Records, place: usize, record: u64) -> Result<Buffer> {
        records.record(place, &file.content)?.ok_or_else(|| file.outside(record))
    }

    /// All of them at once: one after the other, each would wait for memory by itself.
    fn approach(files: &Files<Self>, indices: &[u64]) {
        /// Of a longer record the processor sees by itself what comes next.
        const MOST: u64 = 1 << 10;
        if indices.is_sorted() {
            return;
        }
        for (at, record) in indices.iter().filter_map(|&index| files.find(index).ok()) {
            let file = &files.files()[at];
            let (Some(all), Ok(chunk)) = (file.content.here(), file.chunk(record)) else { continue };
            let end = chunk.limit.min(chunk.begin + MOST);
            prefetch(all.get(chunk.begin as usize..end as usize).unwrap_or_default());
        }
    }
}

named_source!(ArrayRecord of Buffer);
