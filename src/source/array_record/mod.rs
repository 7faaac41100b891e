//! ArrayRecord files: records of bytes, read by number.
//!
//! The layout is defined by [`google/array_record`](https://github.com/google/array_record) and its container format
//! [Riegeli](https://github.com/google/riegeli).

mod blocks;
mod chunk;
mod codec;
#[cfg(feature = "spec")]
pub(super) mod entry;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
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
use super::numbered::{File, Files, Grouped, GroupedFiles, Numbered, Opening, named_source, reader, source_options};
use crate::element::Buffer;
use crate::error::{Error, ErrorKind, Result};
use crate::mmap::{Access, prefetch};

/// Records of ArrayRecord files, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of bytes
/// ([`Buffer`]).
///
/// Reads simple chunks with any number of records, uncompressed or compressed by brotli, zstd or snappy. With the
/// feature `riegeli`, also reads transposed chunks, an option of the writer for protocol buffers, uncompressed or
/// compressed by zstd. Reading a record of any other transposed chunk returns
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// ```no_run
/// use gristmill::source::ArrayRecord;
/// use gristmill::{dataset::map::Source, prelude::*};
/// let ds = Source::new(ArrayRecord::open("train-*.array_record")?).shuffle(42);
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with file, record and the byte offset of the chunk. Records of
/// other chunks are still read. The first read of a chunk checks the hashes of its header and data. A truncated file,
/// or a file whose writer was not closed, has no index and is refused unless
/// [`recover`](ArrayRecordOptions::recover) is set.
///
/// # Cost
/// Opening reads the footer and holds 16 bytes per chunk. The time of a read does not depend on the file's size. An
/// uncompressed record is a view of the mapped file.
///
/// A chunk with several records is decoded once for all its records in a call of
/// [`read_many`](crate::dataset::map::RandomAccess::read_many). Decoded chunks are cached up to
/// [`cache_bytes`](ArrayRecordOptions::cache_bytes). For shuffled reads of more data than that, the cache holds the
/// records that the pass needs soon, and a chunk is decoded once for all of them. A larger cache means fewer decodes.
///
/// See [`Mapping`](crate::source::Mapping) for restrictions on changing the files while they are mapped.
pub struct ArrayRecord(GroupedFiles<Chunks>);

/// Index of a file, and the state of its hash checks.
struct Known {
    chunks: Index,
    /// One bit per chunk: set after the hashes of the chunk were checked.
    checked: Vec<AtomicU64>,
    /// Outcome of the recovery, if the index was lost.
    recovery: Option<Recovery>,
}

impl ArrayRecord {
    /// Returns the files that were read without an index, and the outcome for each: see
    /// [`recover`](ArrayRecordOptions::recover).
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
    /// Returns the chunk that holds a record.
    #[inline]
    fn chunk(&self, record: u64) -> Result<Place> {
        self.index.chunks.find(record).ok_or_else(|| Error::data("in no chunk"))
    }

    /// Decodes the records of a chunk. The chunk's header must match the footer; other fields are validated before use.
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
        // One check per chunk suffices: the mapping does not change.
        let (word, bit) = (&self.index.checked[place.chunk / 64], 1 << (place.chunk % 64));
        if word.load(Relaxed) & bit == 0 {
            chunk.check_data()?;
            word.fetch_or(bit, Relaxed);
        }
        Records::decode(&chunk, self.content.here().is_some())
    }

    /// Returns the error for a record outside of its chunk.
    #[cold]
    fn outside(&self, record: u64) -> Error {
        Error::data("lies outside of its chunk").offset(self.chunk(record).map_or(0, |chunk| chunk.begin))
    }
}

/// Options to open [`ArrayRecord`] files.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct ArrayRecordOptions {
    cache_bytes: usize,
    access: Access,
    recover: bool,
}

default_as!(ArrayRecordOptions, Self { cache_bytes: 256 << 20, access: Access::Normal, recover: false });

source_options!(ArrayRecordOptions of ArrayRecord, access at access);

impl ArrayRecordOptions {
    setters! {
        /// Sets the size of the cache for decoded chunks and their records, in bytes; 256 MiB by default.
        ///
        /// The most recent chunk is kept regardless of its size.
        pub cache_bytes: usize;

        /// Sets whether to read the intact chunks of a file without a valid index; off by default.
        ///
        /// The outcome is logged as a warning and returned by [`recovered`](ArrayRecord::recovered).
        ///
        /// Such a file is scanned chunk by chunk. After a damaged chunk, its header or a block header gives the place
        /// of the next chunk. Records in between are missing, so later records have lower numbers. If the footer is
        /// intact and only the pointer to it is lost, the file is read like an intact file.
        ///
        /// # Cost
        /// Opening such a file reads and hashes all of its bytes, and holds a file of a store in memory meanwhile.
        /// Intact files have no extra cost.
        pub recover: bool;
    }

    /// Opens files, globs or directories (of `.array_record` and `.arrayrecord` files).
    ///
    /// # Errors
    /// If nothing is found, or the index of a file is damaged.
    pub fn open(self, patterns: impl Patterns) -> Result<ArrayRecord> {
        let contents = content::open_all(patterns, Format::ArrayRecord.endings(), self.access)?;
        self.open_contents(contents)
    }

    /// Opens files whose contents were mapped or loaded before.
    pub(super) fn open_contents(self, contents: Contents) -> Result<ArrayRecord> {
        let mut files = Files::open(Chunks::default(), contents, |_, file| Known::open(file, self.recover))?;
        files.format.recovered = files.files.iter().filter_map(|file| Some(file.index.recovery?.records)).sum();
        Ok(ArrayRecord(GroupedFiles::new(files, self.cache_bytes)))
    }
}

/// Reader of records.
#[derive(Default)]
struct Chunks {
    /// Number of recovered records. Part of the parameters, because a later version may recover other records.
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

    /// Prefetches the start of each record's chunk, because separate reads would each wait for memory.
    fn approach(files: &Files<Self>, indices: &[u64]) {
        /// Most bytes to prefetch per chunk; the processor prefetches the rest of a longer record.
        const MOST: u64 = 1 << 10;
        if indices.is_sorted() {
            return;
        }
        for (at, record) in indices.iter().filter_map(|&index| files.find(index).ok()) {
            let file = &files.files[at];
            let (Some(all), Ok(chunk)) = (file.content.here(), file.chunk(record)) else { continue };
            let end = chunk.limit.min(chunk.begin + MOST);
            prefetch(all.get(chunk.begin as usize..end as usize).unwrap_or_default());
        }
    }
}

named_source!(ArrayRecord of Buffer);

reader! {
    /// Opens ArrayRecord files, whose records are bytes: see [`ArrayRecord`](crate::source::ArrayRecord).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-array-record-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::ArrayRecord).open(&dir)?;
    /// # sink.write(Element::new().with("text", "oat"))?;
    /// # sink.finish()?;
    /// assert_eq!(gristmill::array_record(&dir)?.collect()?[0].as_bytes(), b"oat");
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    array_record: ArrayRecord
}
