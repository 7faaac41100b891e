//! Sequential reading of shards, compressed or plain.

use std::path::Path;

use super::super::content::{Content, Contents};
use super::super::file_stream::{FileState, FileStream, Forward, file_stream, shorter};
use super::input::{Inflated, Input};
use super::sample::{Samples, Wanted};
use super::walk::Walk;
use crate::element::Element;
use crate::error::{Error, Result};

file_stream! {
    /// Samples of WebDataset shards in gzip, zstd, LZ4 or plain, read front to back: an
    /// [`IterDataset`](crate::IterDataset) of [`Element`]. Elements are described at [`WebDataset`](super::WebDataset).
    ///
    /// Created by [`WebDatasetOptions::stream`](super::WebDatasetOptions::stream). Compression is detected by its magic
    /// number. Files follow each other in the order of [`find`](super::super::find). A sample never extends past the
    /// end of its file.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the sample and its byte offset, in the decompressed data if the
    /// file is compressed. A sample that cannot be decoded affects no other sample. If an archive is damaged, the place
    /// of the next header is unknown: the sample at the damage is lost, and reading continues with the next file.
    ///
    /// # Cost
    /// One thread decompresses. Several threads decompress if each file is a separate stream, and the streams are read
    /// as [`lanes`](crate::dataset::iter::lanes()). Resuming decompresses the current file again up to the position.
    /// Memory: a single sample.
    WebDatasetStream of Element, WebDatasetIter at FileState, by Wanted
}

impl WebDatasetStream {
    pub(super) fn of(files: Contents, wanted: Wanted) -> Result<Self> {
        Ok(Self(FileStream::of(files, wanted)))
    }
}

/// Reader of a single file.
pub(super) struct Reader {
    samples: Samples<Inflated>,
    /// Number of samples read.
    record: u64,
    /// True if the start of the next sample is unknown.
    lost: bool,
}

impl Reader {
    /// Opens a file at sample `record`, which begins at `byte`.
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

    /// Adds the sample to an error. Marks the offset of a compressed file as an offset in the decompressed data.
    #[cold]
    fn place(&self, error: Error, record: u64) -> Error {
        let error = error.record(record);
        if self.samples.input().is_compressed() { error.and(" (bytes of the decompressed data)") } else { error }
    }
}

impl Forward for Wanted {
    type Record = Element;
    type Reader = Reader;

    facts! { name: "webdataset_stream" }

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
        // A position after the end cannot be restored, because the end mark is before it.
        let over = reader.lost || reader.samples.is_over();
        (!over).then(|| (reader.samples.position(), reader.record))
    }

    fn record_bytes(&self, element: &Element) -> u64 {
        element.nbytes() as u64
    }
}
