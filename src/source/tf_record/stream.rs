//! TFRecord files read front to back: what compression leaves of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::content::{self, Content};
use super::super::files::{self, FileId, Patterns};
use super::super::mmap::Access;
use super::reader::Reader;
use crate::cx::{Cx, StageId};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::exec::Runtime;

const ENDINGS: [&str; 4] = [".tfrecord.gz", ".tfrecords.gz", ".tfrecord", ".tfrecords"];

/// Records of TFRecord files, gzip or plain, read front to back: an [`IterDataset`] of bytes ([`Buffer`]).
///
/// Compression is known by its magic number. Files follow each other in the order of [`find`](super::super::find).
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the record and its byte offset (in the decompressed data, where it is compressed). A wrong
/// checksum of the data is an error of that record alone; where a length is damaged, nothing says where the next record begins,
/// and the next one read is the first of the next file.
///
/// # Cost
/// One thread decompresses; several do if each file is a stream of its own and they are read as
/// [`lanes`](crate::dataset::iter::lanes()). A resume decompresses the present file again up to its place. Memory: one record.
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct TfRecordStream {
    shared: Arc<Shared>,
}

struct Shared {
    files: Vec<(PathBuf, Content)>,
    identity: String,
}

impl TfRecordStream {
    /// Opens files, globs or directories (of `.tfrecord.gz`, `.tfrecord` and the like).
    ///
    /// # Errors
    /// If nothing is found, or a file cannot be mapped.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::of(content::open_all(patterns, &ENDINGS, Access::Sequential)?)
    }

    /// Files that are in memory already.
    pub(in super::super) fn of(files: Vec<(PathBuf, Content)>) -> Result<Self> {
        let ids = files.iter().map(|(path, file)| file.id(path)).collect::<Result<Vec<FileId>>>()?;
        let identity = files::identity(&ids);
        Ok(Self { shared: Arc::new(Shared { files, identity }) })
    }
}

const NAME: &str = "tfrecord_stream";

impl Stage for TfRecordStream {
    fn name(&self) -> &'static str {
        NAME
    }
    fn params(&self) -> String {
        self.shared.identity.clone()
    }
    fn role(&self) -> Role {
        Role::Source
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl IterDataset for TfRecordStream {
    type Item = Buffer;
    type Iter = TfRecordIter;

    fn iter(&self, _: &Runtime) -> Result<TfRecordIter> {
        Ok(TfRecordIter { shared: self.shared.clone(), file: 0, reader: None })
    }
}

/// A pass over a [`TfRecordStream`].
pub struct TfRecordIter {
    shared: Arc<Shared>,
    file: usize,
    reader: Option<Reader>,
}

/// Where a [`TfRecordIter`] is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TfRecordState {
    /// Files that are behind it.
    pub file: u64,
    /// Bytes of the present file that are behind it, decompressed.
    pub byte: u64,
    /// Records of the present file that are behind it.
    pub record: u64,
}

impl TfRecordIter {
    /// An error in the record that was read last.
    #[cold]
    pub(in super::super) fn blame(&self, error: Error, cx: &Cx) -> Error {
        let record = self.reader.as_ref().map_or(0, |reader| reader.record.saturating_sub(1));
        let error = error.record(record);
        let error = match self.shared.files.get(self.file) {
            Some((path, _)) => error.path(path),
            None => error,
        };
        cx.blame(StageId(0), NAME, error)
    }

    fn read(&mut self) -> Result<Option<Buffer>> {
        let shared = &*self.shared;
        while let Some((path, file)) = shared.files.get(self.file) {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                none => {
                    let opened = Reader::open(file);
                    // What cannot be opened is behind it, as what is damaged is.
                    self.file += usize::from(opened.is_err());
                    none.insert(opened.map_err(|e| e.path(path))?)
                }
            };
            match reader.next() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {
                    self.file += 1;
                    self.reader = None;
                }
                Err(error) => return Err(error.path(path)),
            }
        }
        Ok(None)
    }
}

impl DatasetIterator for TfRecordIter {
    type Item = Buffer;
    type State = TfRecordState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Buffer>> {
        cx.begin_element();
        crate::store::tell(cx);
        match cx.consumed(StageId(0), || self.read()) {
            Ok(Some(record)) => {
                cx.produced(StageId(0), 1, record.len() as u64);
                Ok(Some(record))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(cx.blame(StageId(0), NAME, error)),
        }
    }

    fn state(&self) -> TfRecordState {
        match &self.reader {
            // What is left of a file that is lost does not come back by starting again.
            Some(reader) if reader.lost => TfRecordState { file: self.file as u64 + 1, byte: 0, record: 0 },
            Some(reader) => TfRecordState { file: self.file as u64, byte: reader.byte, record: reader.record },
            None => TfRecordState { file: self.file as u64, byte: 0, record: 0 },
        }
    }

    fn restore(&mut self, state: TfRecordState, _: &mut Cx) -> Result<()> {
        let files = &self.shared.files;
        let file = usize::try_from(state.file).ok().filter(|&file| file <= files.len());
        self.file = file.ok_or_else(|| Error::state(format!("file {} of {}", state.file, files.len())))?;
        self.reader = match files.get(self.file) {
            _ if state.byte == 0 => None,
            Some((path, file)) => {
                let short =
                    || Error::state(format!("the file has fewer than the {} bytes that were read of it", state.byte));
                let mut reader = Reader::open(file).map_err(|e| e.path(path))?;
                reader.skip_to(state.byte, state.record).map_err(|e| short().path(path).caused_by(e))?;
                Some(reader)
            }
            None => return Err(Error::state(format!("byte {} behind the last file", state.byte))),
        };
        Ok(())
    }
}

impl fmt::Debug for TfRecordStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TfRecordStream({} files)", self.shared.files.len())
    }
}

impl fmt::Debug for TfRecordIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TfRecordIter({:?})", self.state())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{TfRecord, frame};
    use super::*;

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
        let mut restore = |file, byte| ds.iter(&run).unwrap().restore(TfRecordState { file, byte, record: 0 }, &mut cx);
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
