//! One row group, decoded on demand in spans of rows.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};

use parquet::errors::ParquetError;

use super::chunk::Chunks;
use crate::cx::turn::take_turn;
use crate::error::{Error, Result};
use crate::fork::PerProcess;
use crate::source::arrow::spans::Span;
use crate::source::contained::contained;
use crate::source::units::Held;

/// Uncompressed size of a span in bytes, estimated as if all rows had equal sizes.
const SPAN_BYTES: u64 = 16 << 20;
/// Maximum rows of a span. The decoder reserves memory by this number, so a damaged row count must not set it.
const SPAN_ROWS: u64 = 1 << 16;

/// A file, its metadata, and the projected columns.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) chunks: Chunks,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) mask: ProjectionMask,
}

/// A row group of a file.
pub(super) struct Group {
    pub(super) file: usize,
    group: usize,
    pub(super) rows: u64,
    span_rows: u64,
    /// True if pages can be found without reading the pages before them.
    has_page_index: bool,
    /// A decoder positioned at the start of a span. The lock is held while a span is decoded. Threads that read in
    /// order therefore wait, instead of decoding pages twice.
    live: PerProcess<Mutex<Option<Live>>>,
}

struct Live {
    next_span: u64,
    reader: ParquetRecordBatchReader,
}

impl Group {
    /// Creates row group `group` of `file`, which has index `at` in the list of files.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) for a negative row count.
    pub(super) fn new(at: usize, file: &File, group: usize) -> Result<Self> {
        let metadata = file.metadata.metadata();
        let info = metadata.row_group(group);
        let rows = u64::try_from(info.num_rows());
        let rows = rows.map_err(|_| Error::data(format!("row group {group}: {} rows", info.num_rows())))?;
        let bytes = u64::try_from(info.total_byte_size()).unwrap_or(0).max(1);
        let by_bytes = (u128::from(SPAN_BYTES) * u128::from(rows) / u128::from(bytes)).max(1);
        let span_rows = u64::try_from(by_bytes).unwrap_or(u64::MAX).min(SPAN_ROWS).min(rows.max(1));
        let index = metadata.page_index();
        let has_page_index =
            index.is_some_and(|index| (0..info.num_columns()).any(|c| index.offset_index(group, c).is_some()));
        Ok(Self { file: at, group, rows, span_rows, has_page_index, live: PerProcess::default() })
    }

    /// Returns the span of a row, the row's place in the span, and the number of rows from there to the span's end.
    pub(super) fn span_of(&self, row: u64) -> (u64, usize, usize) {
        let (span, place) = (row / self.span_rows, row % self.span_rows);
        let left = (self.span_rows - place).min(self.rows - row);
        (span, place as usize, left as usize)
    }

    /// Decodes span `span` after acquiring the lock, unless `known` then returns it.
    ///
    /// Passes the span to `put`, and also the spans before it that had to be decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with file and row group for damaged pages.
    pub(super) fn decode(
        &self,
        file: &File,
        span: u64,
        known: impl FnOnce() -> Option<Held<Span>>,
        mut put: impl FnMut(u64, RecordBatch) -> Result<Held<Span>>,
    ) -> Result<Held<Span>> {
        let mut slot = take_turn(self.live.get());
        if let Some(span) = known() {
            return Ok(span);
        }
        self.fetch(file, span);
        // Taken out, so that a decoder that fails is dropped.
        let mut live = match slot.take() {
            Some(live) if live.next_span == span || (live.next_span < span && !self.has_page_index) => live,
            _ => Live { next_span: span, reader: self.guard(file, || self.reader(file, span))? },
        };
        loop {
            let at = live.next_span;
            let decoded = self.guard(file, || put(at, self.next(&mut live)?))?;
            if at == span {
                if live.next_span * self.span_rows < self.rows {
                    *slot = Some(live);
                }
                return Ok(decoded);
            }
        }
    }

    /// Returns the number of spans.
    pub(super) fn spans(&self) -> u64 {
        self.rows.div_ceil(self.span_rows)
    }

    /// Estimates the decoded size of all rows in bytes, from the sizes of the projected columns' pages.
    pub(super) fn bytes(&self, file: &File) -> u64 {
        let info = file.metadata.metadata().row_group(self.group);
        let read = (0..info.num_columns()).filter(|&column| file.mask.leaf_included(column));
        let bytes = read.map(|column| u64::try_from(info.column(column).uncompressed_size()).unwrap_or(0));
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the byte ranges of a span's pages. Returns no ranges if the file is not in a store.
    pub(super) fn pages(&self, file: &File, span: u64) -> Vec<Range<u64>> {
        let is_far = file.chunks.content.here().is_none();
        let rows = span * self.span_rows..(span + 1).saturating_mul(self.span_rows).min(self.rows);
        if is_far { super::ahead::pages(file, self.group, rows) } else { Vec::new() }
    }

    /// Starts to fetch the pages of a span and the next span from a store. The next span is often read next.
    fn fetch(&self, file: &File, span: u64) {
        if file.chunks.content.here().is_none() {
            let rows = span * self.span_rows..(span + 2).saturating_mul(self.span_rows).min(self.rows);
            file.chunks.content.fetch(&super::ahead::pages(file, self.group, rows));
        }
    }

    /// Drops the decoder, unless another thread is using it.
    pub(super) fn rest(&self) {
        if let Ok(mut live) = self.live.get().try_lock() {
            *live = None;
        }
    }

    /// Returns true if the group has several spans, and therefore keeps a decoder between them.
    pub(super) fn is_large(&self) -> bool {
        self.span_rows < self.rows
    }

    fn reader(&self, file: &File, span: u64) -> Result<ParquetRecordBatchReader> {
        let chunks = file.chunks.with_pages(super::ahead::starts(file, self.group));
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, file.metadata.clone())
            .with_row_groups(vec![self.group])
            .with_projection(file.mask.clone())
            .with_batch_size(self.span_rows as usize);
        let before = span * self.span_rows;
        let builder = match before {
            0 => builder,
            _ => builder.with_row_selection(RowSelection::from(vec![
                RowSelector::skip(before as usize),
                RowSelector::select((self.rows - before) as usize),
            ])),
        };
        builder.build().map_err(damaged)
    }

    fn next(&self, live: &mut Live) -> Result<RecordBatch> {
        let from = live.next_span * self.span_rows;
        let want = self.span_rows.min(self.rows - from);
        let batch = live.reader.next().transpose().map_err(|e| damaged(e.into()))?;
        live.next_span += 1;
        match batch {
            Some(batch) if batch.num_rows() as u64 == want => Ok(batch),
            batch => {
                let rows = batch.map_or(0, |batch| batch.num_rows());
                Err(Error::data(format!("{rows} rows, but the footer states {want} from row {from} on")))
            }
        }
    }

    /// Runs the decoder on untrusted bytes. Converts its panics into errors.
    fn guard<T>(&self, file: &File, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let result = contained(work).map_err(|error| file.chunks.failure().unwrap_or(error));
        result.map_err(|e| e.of(&format!("row group {}", self.group)).path(&file.path))
    }
}

/// Converts an error of the decoder. An error from a store is returned unchanged.
fn damaged(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => Error::data(source.to_string()),
        },
        other => Error::data(other.to_string()),
    }
}
