//! Sequential reading of TFRecord files, compressed or plain.

use std::path::Path;

use super::super::content::{self, Content, Contents};
use super::super::file_stream::{FileState, FileStream, Forward, file_stream, shorter};
use super::super::files::Patterns;
use super::super::formats::Format;
use super::reader::Reader;
use crate::cx::Cx;
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::mmap::Access;

file_stream! {
    /// Records of TFRecord files in gzip, zlib or plain, read front to back: an [`IterDataset`](crate::IterDataset) of
    /// bytes ([`Buffer`]).
    ///
    /// Compression is detected by its magic number. A file with zlib's magic number is plain if these bytes begin a
    /// record whose length has the right checksum. Files follow each other in the order of
    /// [`find`](super::super::find).
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the record and its byte offset, in the decompressed data if the
    /// file is compressed. A wrong checksum of the data affects only that record. After a damaged length, the start of
    /// the next record is unknown, and reading continues with the next file.
    ///
    /// # Cost
    /// One thread decompresses. Several threads decompress if each file is a separate stream, and the streams are read
    /// as [`lanes`](crate::dataset::iter::lanes()). Resuming decompresses the current file again up to the position.
    /// Memory: a single record.
    TfRecordStream of Buffer, TfRecordIter at FileState, by TfRecords
}

/// The TFRecord format.
struct TfRecords;

impl TfRecordStream {
    /// Opens files, globs or directories (of `.tfrecord.gz`, `.tfrecord.zlib`, `.tfrecord` and the like).
    ///
    /// # Errors
    /// An error if no file is found, or if a file cannot be mapped.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::of(content::open_all(patterns, &Format::endings_of("tfrecord"), Access::Sequential)?)
    }

    /// Creates the stream from open files.
    pub(in super::super) fn of(files: Contents) -> Result<Self> {
        Ok(Self(FileStream::of(files, TfRecords)))
    }
}

impl TfRecordIter {
    /// Attributes an error to the last record.
    #[cold]
    pub(in super::super) fn blame(&self, error: Error, cx: &Cx) -> Error {
        self.0.blame(error, cx)
    }
}

impl Forward for TfRecords {
    type Record = Buffer;
    type Reader = Reader;

    facts! { name: "tfrecord_stream" }

    fn params(&self) -> String {
        String::new()
    }

    fn open(&self, path: &Path, file: &Content, byte: u64, records: u64) -> Result<Reader> {
        let mut reader = Reader::open(file)?;
        reader.skip_to(byte, records).map_err(|e| shorter(byte).path(path).caused_by(e))?;
        Ok(reader)
    }

    fn next(&self, reader: &mut Reader, _: &Path) -> Result<Option<Buffer>> {
        reader.next()
    }

    fn place(reader: &Reader) -> Option<(u64, u64)> {
        (!reader.lost).then_some((reader.byte, reader.record))
    }

    fn record_bytes(&self, record: &Buffer) -> u64 {
        record.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{TfRecord, frame};
    use super::*;
    use crate::dataset::{DatasetIterator, IterDataset, IterDatasetExt};
    use crate::exec::Runtime;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn framed(records: &[&[u8]]) -> Vec<u8> {
        records.iter().flat_map(|record| TfRecord::framed(record)).collect()
    }

    fn stream(files: &[(&str, Vec<u8>)]) -> TfRecordStream {
        TfRecordStream::of(files.iter().map(|(name, bytes)| (name.into(), Buffer::copy_from(bytes).into())).collect())
            .unwrap()
    }

    #[test]
    fn files_of_zlib_are_read_and_their_damage_is_told() {
        let zlib = |bytes: &[u8]| {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let packed = zlib(&framed(&[b"one", &[7; 3 << 20]]));
        let read = stream(&[("a.tfrecord.zlib", packed.clone()), ("b", framed(&[b"two"]))]).collect().unwrap();
        assert_eq!(read.iter().map(Buffer::len).collect::<Vec<_>>(), [3, 3 << 20, 3]);
        let cut =
            stream(&[("a.tfrecord.zlib", packed[..packed.len() - 3].to_vec())]).collect().unwrap_err().to_string();
        assert!(cut.contains("a.tfrecord.zlib") && cut.contains("zlib"), "{cut}");
        // Access by number is rejected, with the stream as the remedy.
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("a.tfrecord"), &packed).unwrap();
        let error = TfRecord::open(temp.path()).unwrap_err();
        assert!(error.message().contains("is compressed with zlib"), "{error}");
        // A length of 0x9c78 begins like zlib.
        let long = vec![1; 0x9c78];
        assert_eq!(stream(&[("c", framed(&[&long]))]).collect().unwrap()[0].len(), 0x9c78);
    }

    #[test]
    fn a_state_continues_and_is_kept() {
        let long = vec![7; 3 << 20];
        let ds =
            stream(&[("a.gz", gzip(&framed(&[b"one", &long]))), ("b", framed(&[])), ("c", framed(&[b"", b"four"]))]);
        let (run, mut cx) = (Runtime::inline(), Cx::default());
        let all = ds.collect().unwrap();
        assert_eq!(all.iter().map(Buffer::len).collect::<Vec<_>>(), [3, 3 << 20, 0, 4]);
        let mut iter = ds.iter(&run).unwrap();
        for taken in 0..=all.len() + 1 {
            let state = iter.state();
            let mut other = ds.iter(&run).unwrap();
            other.restore(state.clone(), &mut cx).unwrap();
            assert_eq!(other.state(), state);
            let rest: Vec<_> = std::iter::from_fn(|| other.next(&mut cx).unwrap()).collect();
            assert_eq!(rest, all[taken.min(all.len())..], "after {taken}");
            iter.next(&mut cx).unwrap();
        }
        let mut restore = |file, byte| ds.iter(&run).unwrap().restore(FileState { file, byte, record: 0 }, &mut cx);
        assert!([restore(4, 0), restore(3, 1), restore(2, 1000)].iter().all(Result::is_err));
    }

    #[test]
    fn a_damaged_record_is_passed_and_a_damaged_length_ends_the_file() {
        let mut data = framed(&[b"one", b"two", b"three"]);
        data[19 + 12] ^= 1;
        let mut length = framed(&[b"one", b"two"]);
        length[19] ^= 1;
        let ds = stream(&[("a.gz", gzip(&data)), ("b", length), ("c", framed(&[b"last"]))]);
        let (mut iter, mut cx) = (ds.iter(&Runtime::inline()).unwrap(), Cx::default());
        let mut next = || match iter.next(&mut cx) {
            Ok(record) => record.map(|record| String::from_utf8(record.as_bytes().to_vec()).unwrap()),
            Err(error) => Some(error.to_string()),
        };
        assert_eq!(next().unwrap(), "one");
        let error = next().unwrap();
        assert!(
            error.contains("a.gz: record 1: the checksum of the data is 0x") && error.contains("at byte 19 of the"),
            "{error}"
        );
        assert_eq!(next().unwrap(), "three");
        assert_eq!(next().unwrap(), "one");
        let error = next().unwrap();
        assert!(error.contains("b: record 1: byte 19: the checksum of the length is 0x"), "{error}");
        assert_eq!(next().unwrap(), "last");
        assert_eq!(next(), None);
    }

    #[test]
    fn what_is_damaged_is_skipped_where_that_is_asked_for() {
        use crate::dataset::iter::{BadRecords, laws};
        let mut data = framed(&[b"one", b"two", b"three"]);
        data[19 + 12] ^= 1;
        let cut = gzip(&framed(&[b"four", b"five"]));
        let zstd = b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00".to_vec();
        let files = [("a", data), ("b", cut[..cut.len() - 12].to_vec()), ("c", zstd), ("d", framed(&[b"last"]))];
        let ds = stream(&files).on_bad_record(BadRecords::Skip { limit: Some(3), consecutive: Some(2) });
        let read = laws::check(&ds);
        assert_eq!((read[0].as_bytes(), read[1].as_bytes()), (b"one".as_slice(), b"three".as_slice()));
        assert_eq!(read.last().unwrap().as_bytes(), b"last");
        let few = stream(&files).on_bad_record(BadRecords::Skip { limit: None, consecutive: Some(1) });
        assert!(few.collect().unwrap_err().message().contains("1 bad records in a row"));
    }

    #[test]
    fn a_length_that_is_not_there_takes_no_memory() {
        let mut file = (1u64 << 40).to_le_bytes().to_vec();
        file.extend_from_slice(&frame::masked(&file).to_le_bytes());
        let error = stream(&[("a.gz", gzip(&file))]).collect().unwrap_err().to_string();
        assert!(error.contains("the file ends inside of a record"), "{error}");
    }
}
