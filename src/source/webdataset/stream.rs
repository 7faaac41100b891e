//! Shards read front to back: what compression leaves of them.

use std::path::Path;

use super::super::content::{Content, Contents};
use super::super::file_stream::{FileState, FileStream, Forward, file_stream, shorter};
use super::input::{Inflated, Input};
use super::sample::{Samples, Wanted};
use super::walk::Walk;
use crate::element::Element;
use crate::error::{Error, Result};

file_stream! {
    /// Samples of WebDataset shards, of gzip, zstd, LZ4 or plain, read front to back: an [`IterDataset`](crate::IterDataset) of [`Element`], each as
    /// [`WebDataset`](super::WebDataset) has it.
    ///
    /// Made by [`WebDatasetOptions::stream`](super::WebDatasetOptions::stream). Compression is known by its magic number. Files follow each other in the order
    /// of [`find`](super::super::find); a sample does not reach over the end of its file.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the sample and its byte offset (in the decompressed data, where it is compressed). A sample that
    /// cannot be decoded is an error of that sample alone; where an archive is damaged, nothing says where the next header is: the sample
    /// that reaches there is lost, and the next one read is the first of the next file.
    ///
    /// # Cost
    /// One thread decompresses; several do if each file is a stream of its own and they are read as
    /// [`lanes`](crate::dataset::iter::lanes()). A resume decompresses the present file again up to its place. Memory: one sample.
    WebDatasetStream of Element, WebDatasetIter at FileState, by Wanted
}

impl WebDatasetStream {
    pub(super) fn of(files: Contents, wanted: Wanted) -> Result<Self> {
        Ok(Self(FileStream::of(files, wanted)))
    }
}

/// Reads one file.
pub(super) struct Reader {
    samples: Samples<Inflated>,
    /// Samples behind it.
    record: u64,
    /// Nothing says where the next sample begins.
    lost: bool,
}

impl Reader {
    /// In front of sample `record`, which begins at `byte`.
    fn open(file: &Content, byte: u64, record: u64) -> Result<Self> {
        let mut input = Inflated::open(file)?;
        if input.skip(byte)? < byte {
            return Err(shorter(byte));
        }
        Ok(Self { samples: Samples::new(Walk::whole(input)), record, lost: false })
    }

    fn next(&mut self, wanted: &Wanted, path: &Path) -> Result<Option<Element>> {
        if self.lost {
            return Ok(None);
        }
        let sample = self.samples.next().inspect_err(|_| self.lost = true);
        let Some(sample) = sample.map_err(|e| self.place(e, self.record))? else { return Ok(None) };
        self.record += 1;
        wanted.element(sample, path).map(Some).map_err(|e| self.place(e, self.record - 1))
    }

    /// Adds the sample, and says of what the offset is one.
    #[cold]
    fn place(&self, error: Error, record: u64) -> Error {
        let error = error.record(record);
        if self.samples.input().is_compressed() { error.and(" (bytes of the decompressed data)") } else { error }
    }
}

impl Forward for Wanted {
    type Record = Element;
    type Reader = Reader;

    fn name(&self) -> &'static str {
        "webdataset_stream"
    }

    fn params(&self) -> String {
        self.identity()
    }

    fn open(&self, _: &Path, file: &Content, byte: u64, records: u64) -> Result<Reader> {
        Reader::open(file, byte, records)
    }

    fn next(&self, reader: &mut Reader, path: &Path) -> Result<Option<Element>> {
        reader.next(self, path)
    }

    fn place(reader: &Reader) -> Option<(u64, u64)> {
        // Behind the end nothing says that it is one.
        let over = reader.lost || reader.samples.is_over();
        (!over).then(|| (reader.samples.position(), reader.record))
    }

    fn record_bytes(&self, element: &Element) -> u64 {
        element.nbytes() as u64
    }
}
