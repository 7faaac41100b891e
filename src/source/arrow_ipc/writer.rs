//! Writing Arrow's IPC files and streams.

use std::fmt;
use std::io::Write;
use std::mem;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;

use crate::element::{Element, Name};
use crate::error::{Error, Result};
use crate::source::arrow::failed;
use crate::source::arrow::kind::Kind;
use crate::source::arrow::rows::{Columns, Declared, Rows};

/// Writes elements as the rows of an IPC file, which is also the second version of Feather, or of a stream.
///
/// ```
/// use gristmill::source::{ArrowWriter, ArrowWriterOptions};
/// use gristmill::{Array, Element};
/// let mut writer = ArrowWriter::new(Vec::new(), ArrowWriterOptions::new())?;
/// writer.write(&Element::new().with("text", "one").with("ids", Array::from_vec(vec![1i32, 2])))?;
/// assert!(writer.finish()?.starts_with(b"ARROW1"));
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// Columns are made of values as [`ParquetWriter`](super::super::ParquetWriter) makes them: numbers, text and bytes as they are, arrays
/// of one dimension as lists, of more as lists of lists of fixed size (the first dimension may differ from row to row, the
/// others not), trees as structs, lists as lists. They are those of the first record batch, or of an
/// [`example`](ArrowWriterOptions::example). A column that a row does not have is null, and a list of numbers without nulls reads
/// back as an array; all else reads back as it was.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the record for a value that its column cannot hold, at the latest when the
/// file is finished; [`ErrorKind::Io`](crate::ErrorKind::Io) if it cannot be written. A writer that has failed writes no more.
///
/// # Determinism
/// The same elements and options make the same bytes, for one version of the codecs.
///
/// # Cost
/// The elements of a record batch are held until it is full.
#[must_use = "a file that is not finished cannot be read"]
pub struct ArrowWriter<W: Write> {
    rows: Rows,
    state: State<W>,
    options: ArrowWriterOptions,
}

enum State<W: Write> {
    /// The columns are not known yet.
    Waiting(W),
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
    Failed,
}

/// Compression of the record batches of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrowCompression {
    /// Not at all: rows are then read where they lie.
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard at a level from 1 to 22.
    Zstd(i32),
}

/// Options with which an Arrow file is written.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are given to a writer"]
pub struct ArrowWriterOptions {
    stream: bool,
    compression: ArrowCompression,
    batch_rows: usize,
    batch_bytes: usize,
    columns: Declared,
}

impl Default for ArrowWriterOptions {
    fn default() -> Self {
        let (batch_rows, batch_bytes) = (1024, 16 << 20);
        Self { stream: false, compression: ArrowCompression::None, batch_rows, batch_bytes, columns: Declared::Nothing }
    }
}

impl ArrowWriterOptions {
    /// A file, not compressed, record batches of 1,024 rows or 16 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// A stream, which has no index at its end, instead of a file.
    pub fn stream(mut self) -> Self {
        self.stream = true;
        self
    }

    /// Sets how record batches are compressed; not at all at first.
    pub fn compression(mut self, compression: ArrowCompression) -> Self {
        self.compression = compression;
        self
    }

    /// Rows in a record batch at most; 1,024 at first. Where it is compressed, reading any of them decodes all of them.
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Bytes of values in a record batch, about, at most; 16 MiB at first.
    pub fn batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes.max(1);
        self
    }

    /// The columns are those of this element, whose values do not count.
    pub fn example(mut self, example: Element) -> Self {
        self.columns = Declared::Example(example);
        self
    }

    /// The columns are these.
    pub(crate) fn columns(mut self, columns: Vec<(Name, Kind)>) -> Self {
        self.columns = Declared::Columns(columns);
        self
    }

    fn ipc(&self) -> Result<IpcWriteOptions, ArrowError> {
        let (codec, level) = match self.compression {
            ArrowCompression::None => (None, None),
            ArrowCompression::Lz4 => (Some(CompressionType::LZ4_FRAME), None),
            ArrowCompression::Zstd(level) => (Some(CompressionType::ZSTD), Some(level)),
        };
        IpcWriteOptions::default().try_with_compression(codec)?.try_with_compression_level(level)
    }
}

impl<W: Write> ArrowWriter<W> {
    /// Begins a file in `out`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a level that a codec does not have.
    pub fn new(out: W, options: ArrowWriterOptions) -> Result<Self> {
        Self::with_columns(out, options, None)
    }

    /// The same, of the columns of another file.
    pub(super) fn with_columns(out: W, options: ArrowWriterOptions, columns: Option<Columns>) -> Result<Self> {
        options.ipc().map_err(|e| Error::config(e.to_string()))?;
        let columns = match columns {
            Some(columns) => Some(columns),
            None => options.columns.columns()?,
        };
        let rows = Rows::new(options.batch_rows, options.batch_bytes, columns);
        Ok(Self { rows, state: State::Waiting(out), options })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The errors that the type lists.
    pub fn write(&mut self, row: &Element) -> Result<()> {
        if matches!(self.state, State::Failed) {
            return Err(failed_before());
        }
        let batch = self.rows.push(row).inspect_err(|_| self.state = State::Failed)?;
        batch.map_or(Ok(()), |batch| self.write_batch(&batch))
    }

    /// Ends the file, and gives back what it was written to.
    ///
    /// # Errors
    /// The errors that the type lists.
    pub fn finish(self) -> Result<W> {
        self.finish_with_columns().map(|(out, _)| out)
    }

    /// The same, and what another file of the same columns needs.
    pub(super) fn finish_with_columns(mut self) -> Result<(W, Option<Columns>)> {
        if let Some(batch) = self.rows.take()? {
            self.write_batch(&batch)?;
        }
        self.begin()?;
        let out = match mem::replace(&mut self.state, State::Failed) {
            State::File(file) => file.into_inner().map_err(failed)?,
            State::Stream(stream) => stream.into_inner().map_err(failed)?,
            State::Waiting(_) | State::Failed => return Err(failed_before()),
        };
        Ok((out, self.rows.into_columns()))
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.begin()?;
        let written = match &mut self.state {
            State::File(file) => file.write(batch),
            State::Stream(stream) => stream.write(batch),
            State::Waiting(_) | State::Failed => return Err(failed_before()),
        };
        written.inspect_err(|_| self.state = State::Failed).map_err(failed)
    }

    /// Writes the schema, as soon as it is known.
    fn begin(&mut self) -> Result<()> {
        self.state = match mem::replace(&mut self.state, State::Failed) {
            State::Waiting(out) => self.open(out).map_err(failed)?,
            begun => begun,
        };
        Ok(())
    }

    fn open(&self, out: W) -> Result<State<W>, ArrowError> {
        let (schema, options) = (self.rows.schema(), self.options.ipc()?);
        Ok(if self.options.stream {
            State::Stream(Box::new(StreamWriter::try_new_with_options(out, &schema, options)?))
        } else {
            State::File(Box::new(FileWriter::try_new_with_options(out, &schema, options)?))
        })
    }
}

#[cold]
fn failed_before() -> Error {
    Error::config("this file could not be written before: it ends here")
}

impl<W: Write> fmt::Debug for ArrowWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowWriter").field("options", &self.options).finish_non_exhaustive()
    }
}
