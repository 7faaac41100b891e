//! Writer of Arrow IPC files and streams.

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

/// Writer of elements as rows of an IPC file, which is also version 2 of Feather, or of an IPC stream.
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
/// Columns are made from values as in [`ParquetWriter`](super::super::ParquetWriter): numbers, text and bytes
/// unchanged, trees as structs, lists as lists. An array of one dimension becomes a list, and each further dimension a
/// fixed-size list; only the first dimension may differ from row to row.
///
/// The first record batch or an [`example`](ArrowWriterOptions::example) determines the columns. A column that a row
/// does not have is null. A list of numbers without nulls reads back as an array; all other values read back unchanged.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the record if a column cannot hold a value, reported by `finish` at
/// the latest; [`ErrorKind::Io`](crate::ErrorKind::Io) if the file cannot be written. After an error, all writes fail.
///
/// # Determinism
/// Equal elements and options give equal bytes, for a given version of the codecs.
///
/// # Cost
/// Holds the elements of a record batch until the batch is full.
#[must_use = "a file that is not finished cannot be read"]
pub struct ArrowWriter<W: Write> {
    rows: Rows,
    state: State<W>,
    options: ArrowWriterOptions,
}

enum State<W: Write> {
    /// Nothing is written yet.
    Waiting(W),
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
    Failed,
}

/// Compression of the record batches of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrowCompression {
    /// Uncompressed: rows are read as views of the file.
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard at a level from 1 to 22.
    Zstd(i32),
}

/// Options to write an Arrow file.
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
    /// Writes an uncompressed file with record batches of 1,024 rows or 16 MiB.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes a stream, which has no index at its end, instead of a file.
    pub fn stream(mut self) -> Self {
        self.stream = true;
        self
    }

    setters! {
        /// Sets the compression of record batches; uncompressed by default.
        pub compression: ArrowCompression;

        /// Sets the largest number of rows per record batch; 1,024 by default. A compressed batch is always decoded
        /// whole.
        pub batch_rows(rows: usize) => batch_rows = rows.max(1);

        /// Sets the approximate largest size of the values in a record batch, in bytes; 16 MiB by default.
        pub batch_bytes(bytes: usize) => batch_bytes = bytes.max(1);

        /// Sets the columns to the columns of this element; its values are not written.
        pub example(example: Element) => columns = Declared::Example(example);

        /// Sets the columns.
        pub(crate) columns(columns: Vec<(Name, Kind)>) => columns = Declared::Columns(columns);
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
    /// Starts a file in `out`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the codec does not have the compression level.
    pub fn new(out: W, options: ArrowWriterOptions) -> Result<Self> {
        Self::with_columns(out, options, None)
    }

    /// Like `new`, with the columns of another file.
    pub(super) fn with_columns(out: W, options: ArrowWriterOptions, columns: Option<Columns>) -> Result<Self> {
        options.ipc().map_err(|e| Error::config(e.to_string()))?;
        let columns = if let Some(columns) = columns { Some(columns) } else { options.columns.columns()? };
        let rows = Rows::new(options.batch_rows, options.batch_bytes, columns);
        Ok(Self { rows, state: State::Waiting(out), options })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// As listed for the type.
    pub fn write(&mut self, row: &Element) -> Result<()> {
        if matches!(self.state, State::Failed) {
            return Err(failed_before());
        }
        let batch = self.rows.push(row).inspect_err(|_| self.state = State::Failed)?;
        batch.map_or(Ok(()), |batch| self.write_batch(&batch))
    }

    /// Ends the file, and returns the inner writer.
    ///
    /// # Errors
    /// As listed for the type.
    pub fn finish(self) -> Result<W> {
        self.finish_with_columns().map(|(out, _)| out)
    }

    /// Like `finish`, and also returns the columns, to start another file with them.
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
        Ok((out, self.rows.columns))
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

    /// Writes the schema, if it was not written yet.
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

debug_as!(<W: Write> ArrowWriter<W>, |self, f| {
    f.debug_struct("ArrowWriter").field("options", &self.options).finish_non_exhaustive()
});
