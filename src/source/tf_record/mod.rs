//! TFRecord files: records of bytes, each with two checksums.

#[cfg(feature = "spec")]
pub(super) mod entry;
mod examples;
mod far;
mod frame;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod reader;
mod seek;
mod stream;
mod writer;

pub use self::examples::ExamplesIter;
use self::frame::{FOOT, HEAD};
pub(crate) use self::reader::Reader as TfRecordReader;
pub use self::stream::{TfRecordIter, TfRecordStream};
pub use self::writer::{TfRecordWriter, TfRecordWriterOptions};
use super::content::{self, Content, Contents, refuse_compressed};
use super::files::Patterns;
use super::formats::Format;
use super::index_cache::{IndexCache, Records};
use super::inflate::codecs::beginning_of_zlib;
use super::numbered::{File, Files, Numbered, by_starts, named_source, reader, source_options};
use super::signs::{self, may_be_zlib};
use super::starts::{Facts, Starts, StartsBuilder};
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::mmap::Access;

/// Number of bytes at the beginning of a file that determine its compression.
pub(crate) const BEGINNING: u64 = HEAD as u64;

/// Returns the codec of a file by its first bytes, if it is compressed. TensorFlow supports zlib besides gzip. The
/// length of a record may also look like zlib's magic number, but then its checksum matches.
pub(crate) fn compression(head: &[u8]) -> Option<&'static str> {
    let is_zlib = || may_be_zlib(head) && !is_tf_record(head);
    signs::compression(head).or_else(|| is_zlib().then_some("zlib"))
}

/// Returns true if these first bytes belong to a TFRecord file: the checksum of the first length matches.
pub(crate) fn is_tf_record(head: &[u8]) -> bool {
    head.get(..HEAD).is_some_and(|head| frame::length(head).is_ok())
}

/// Returns true if these first bytes belong to a zlib stream of records.
pub(crate) fn is_zlib(head: &[u8]) -> bool {
    may_be_zlib(head) && is_tf_record(&beginning_of_zlib(head, 4 << 10))
}

/// Records of uncompressed TFRecord files, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of
/// bytes ([`Buffer`]), as views of the mapped files. Files in gzip and zlib are read in order, by `TfRecordStream`.
///
/// ```
/// use gristmill::dataset::map::RandomAccess;
/// use gristmill::source::TfRecord;
/// # let dir = std::env::temp_dir().join(format!("gristmill-doc-tf-record-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir).unwrap();
/// # let path = dir.join("a.tfrecord");
/// let record = gristmill::source::TfRecord::framed(b"hi");
/// std::fs::write(&path, &record).unwrap();
/// assert_eq!(TfRecord::open(&path)?.read(0)?.as_bytes(), b"hi");
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the record and its byte offset, on opening a file with a damaged
/// length, because the start of the next record is then unknown. Reading a record verifies both checksums; a mismatch
/// affects only that record.
///
/// # Cost
/// Opening scans the lengths of all records, or loads the starts of the records from the [`IndexCache`]. Holds 4 bytes
/// per record. Reading takes the time of a checksum of the data. See [`Mapping`](super::Mapping) for the rules on
/// changing mapped files.
pub struct TfRecord(Files<Frames>);

impl TfRecord {
    /// Returns a record in its frame: length, checksum of the length, data, checksum of the data.
    pub fn framed(record: &[u8]) -> Vec<u8> {
        let (head, foot) = frame::around(record);
        [head.as_slice(), record, &foot].concat()
    }
}

/// Options for opening [`TfRecord`] files.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing until `open`"]
pub struct TfRecordOptions {
    cache: IndexCache,
    access: Access,
}

source_options!(TfRecordOptions of TfRecord, access at access);

impl TfRecordOptions {
    /// Sets the place of the index of records. Default: beside the file.
    pub fn cache(mut self, cache: IndexCache) -> Self {
        self.cache = cache;
        self
    }

    /// Opens files, globs or directories (of `.tfrecord` and `.tfrecords` files).
    ///
    /// # Errors
    /// An error if no file is found, if a file is compressed, or if a length is damaged.
    pub fn open(self, patterns: impl Patterns) -> Result<TfRecord> {
        self.of(content::open_all(patterns, Format::TfRecord.endings(), self.access)?)
    }

    /// Creates the source from open files.
    pub(crate) fn of(&self, contents: Contents) -> Result<TfRecord> {
        Files::indexed(Frames, contents, Records::Frames, &self.cache, starts).map(TfRecord)
    }
}

/// Finds the starts of the records in a file.
fn starts(file: &Content) -> Result<Starts> {
    let head = file.read(0..file.len().min(BEGINNING))?;
    refuse_compressed(
        compression(head.as_bytes()),
        "read it as a stream (`TfRecordStream`; from Python `IterDataset.tfrecord`), or decompress it",
    )?;
    let Some(file) = file.here() else { return far::starts(file) };
    let (mut starts, mut at) = (StartsBuilder::default(), 0);
    while at < file.len() {
        let range = frame::data(file, at).map_err(|e| e.record(starts.len()))?;
        starts.push(at as u64);
        at = range.end + FOOT;
    }
    Ok(starts.finish(Facts { size: file.len() as u64, ..Facts::default() }))
}

/// Reader of records.
struct Frames;

impl Numbered for Frames {
    type Record = Buffer;
    type Index = Starts;

    const NAME: &'static str = "tfrecord";

    by_starts!(Starts, range);

    #[inline]
    fn read(&self, file: &File<Starts>, record: u64) -> Result<Buffer> {
        let missing = || Error::data("no such record");
        let Some(bytes) = file.content.here() else {
            return far::read(&file.content, file.range(record).ok_or_else(missing)?);
        };
        let at = file.index.get(record).ok_or_else(missing)?;
        let range = frame::data(bytes, at as usize)?;
        // `data` has checked that the file contains the checksum.
        let stored = bytes[range.end..].first_chunk::<FOOT>().copied().unwrap_or_default();
        frame::check(&bytes[range.clone()], stored).map_err(|e| e.offset(at))?;
        file.content.read(range.start as u64..range.end as u64)
    }
}

named_source!(TfRecord of Buffer);

reader! {
    /// Opens TFRecord files, whose records are bytes: see [`TfRecord`](crate::source::TfRecord).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-tfrecord-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::TfRecord).open(&dir)?;
    /// # sink.write(Element::new().with("text", "oat"))?;
    /// # sink.finish()?;
    /// assert_eq!(gristmill::tfrecord(&dir)?.collect()?[0].as_bytes(), b"oat");
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    tfrecord: TfRecord
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::RandomAccess;

    #[test]
    fn files_follow_each_other_and_damage_says_where() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, records: &[&[u8]]| {
            let bytes: Vec<u8> = records.iter().flat_map(|record| TfRecord::framed(record)).collect();
            std::fs::write(dir.path().join(name), &bytes).unwrap();
            bytes
        };
        write("a.tfrecord", &[b"one", b""]);
        write("b.tfrecord", &[]);
        let mut bytes = write("c.tfrecord", &[b"three", b"four"]);
        let source = TfRecord::open(dir.path()).unwrap();
        assert_eq!(source.len(), 4);
        let read = |source: &TfRecord, i| source.read(i).map(|record| record.as_bytes().to_vec());
        let all: Vec<_> = (0..4).map(|i| read(&source, i).unwrap()).collect();
        assert_eq!(all, [b"one".as_slice(), b"", b"three", b"four"]);
        assert!(source.read(4).is_err());

        bytes[12 + 5 + 4 + 12] ^= 1;
        let path = dir.path().join("d.tfrecord");
        std::fs::write(&path, &bytes).unwrap();
        let damaged = TfRecord::open(&path).unwrap();
        assert_eq!(read(&damaged, 0).unwrap(), b"three");
        let error = damaged.read(1).unwrap_err().to_string();
        assert!(error.contains("d.tfrecord: record 1: byte 21: the checksum of the data is 0x"), "{error}");
        std::fs::write(&path, &bytes[..30]).unwrap();
        let error = TfRecord::open(&path).unwrap_err().to_string();
        assert!(error.contains("d.tfrecord: record 1: byte 21: the file ends inside of a record's length"), "{error}");
    }

    #[test]
    fn a_large_file_is_walked_over_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tfrecord");
        let bytes: Vec<u8> = (0..10).flat_map(|i| TfRecord::framed(&vec![i; 1 << 20])).collect();
        std::fs::write(&path, bytes).unwrap();
        let open = || TfRecord::open(&path).unwrap();
        let (first, cached) = (open(), dir.path().join(".a.tfrecord.gmi"));
        let index = std::fs::read(&cached).unwrap();
        let second = open();
        assert_eq!((second.len(), second.facts().identity), (first.len(), first.facts().identity));
        assert_eq!(second.read(9).unwrap(), first.read(9).unwrap());
        // A damaged index is rebuilt.
        std::fs::write(&cached, &index[..index.len() - 4]).unwrap();
        assert_eq!(open().read(9).unwrap(), first.read(9).unwrap());
        assert_eq!(std::fs::read(&cached).unwrap(), index);
    }

    #[test]
    fn a_compressed_file_is_refused_with_advice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.tfrecord");
        std::fs::write(&path, b"\x1f\x8b\x08rest").unwrap();
        let error = TfRecord::open(&path).unwrap_err();
        assert!(error.message().contains("gzip") && error.help_text().unwrap().contains("stream"), "{error:?}");
    }

    #[cfg(feature = "http")]
    #[test]
    fn a_length_that_a_server_claims_is_refused() {
        let length = (crate::store::tests::CLAIMED - 16).to_le_bytes();
        let file = [&length[..], &frame::masked(&length).to_le_bytes(), &[0; 300_000]].concat();
        crate::store::tests::is_refused_if_claimed("a.tfrecord", file, |url| TfRecord::open(url)?.read(0));
    }
}
