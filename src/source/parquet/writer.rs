//! Writing of Parquet files.

use std::fmt;
use std::io::Write;
use std::mem;
use std::sync::Arc;

use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use rayon::ThreadPool;

use super::row_groups::RowGroups;
use crate::element::{DType, Element, Name};
use crate::error::{Error, ErrorKind, Result};
use crate::source::arrow::kind::Kind;
use crate::source::arrow::logical::fixed;
use crate::source::arrow::rows::{Declared, Rows};

/// Writes elements as rows of a Parquet file. [`finish`](Self::finish) writes the footer, which readers require.
///
/// ```
/// use gristmill::source::{ParquetWriter, ParquetWriterOptions};
/// use gristmill::{Array, Element};
/// let mut writer = ParquetWriter::new(Vec::new(), ParquetWriterOptions::new())?;
/// for text in ["one", "two"] {
///     writer.write(&Element::new().with("text", text).with("ids", Array::from_vec(vec![1i32, 2])))?;
/// }
/// let file = writer.finish()?;
/// assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// | value | column |
/// |---|---|
/// | scalar | number of that type; `bfloat16` as `uint16` with an extension type |
/// | array with one dimension | list of numbers |
/// | array with more dimensions | list of fixed-size lists; only the first dimension may differ between rows |
/// | text, bytes | string, binary |
/// | tree | struct |
/// | list | list |
/// | null, or a missing column | null |
///
/// The columns are inferred from the first rows (1,024 rows, or fewer if they reach 8 MiB), or from an
/// [`example`](ParquetWriterOptions::example). Rows read back unchanged, with two exceptions: a missing column becomes
/// null, and a list of numbers without nulls becomes an array.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the record for a value that does not fit its column, at the latest
/// on finishing. [`ErrorKind::Io`](crate::ErrorKind::Io) if writing fails. After an error, the writer rejects all rows.
///
/// # Determinism
/// Equal elements and options produce equal bytes for a given version of the codecs.
///
/// # Cost
/// Encodes each row group in memory before writing it.
#[must_use = "a file that is not finished cannot be read"]
pub struct ParquetWriter<W: Write + Send> {
    rows: Rows,
    state: State<W>,
    options: ParquetWriterOptions,
}

enum State<W: Write + Send> {
    /// The columns are not known yet.
    Waiting(W),
    Writing(Box<RowGroups<W>>),
    Failed,
}

/// Compression of the pages of a Parquet file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParquetCompression {
    /// No compression.
    None,
    /// Snappy: fast and widely supported.
    Snappy,
    /// Zstandard, at a level from 1 to 22.
    Zstd(i32),
    /// LZ4, as raw blocks.
    Lz4,
    /// Gzip, at a level from 0 to 9.
    Gzip(u32),
    /// Brotli, at a level from 0 to 11.
    Brotli(u32),
}

impl ParquetCompression {
    fn codec(self) -> Result<Compression> {
        let codec = match self {
            Self::None => Ok(Compression::UNCOMPRESSED),
            Self::Snappy => Ok(Compression::SNAPPY),
            Self::Zstd(level) => ZstdLevel::try_new(level).map(Compression::ZSTD),
            Self::Lz4 => Ok(Compression::LZ4_RAW),
            Self::Gzip(level) => GzipLevel::try_new(level).map(Compression::GZIP),
            Self::Brotli(level) => BrotliLevel::try_new(level).map(Compression::BROTLI),
        };
        codec.map_err(|e| Error::config(e.to_string()))
    }
}

/// Options for writing a Parquet file.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are given to a writer"]
pub struct ParquetWriterOptions {
    compression: ParquetCompression,
    row_group_rows: usize,
    row_group_bytes: usize,
    dictionary: bool,
    byte_stream_split: bool,
    page_index: bool,
    columns: Declared,
    pool: Option<Arc<ThreadPool>>,
}

impl Default for ParquetWriterOptions {
    fn default() -> Self {
        Self {
            compression: ParquetCompression::Zstd(3),
            row_group_rows: 1 << 16,
            row_group_bytes: 64 << 20,
            dictionary: true,
            byte_stream_split: false,
            page_index: true,
            columns: Declared::Nothing,
            pool: None,
        }
    }
}

impl ParquetWriterOptions {
    /// Creates the default options: Zstandard level 3, row groups of 65,536 rows or 64 MiB, dictionaries, a page index.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the compression of pages. Default: Zstandard at level 3.
        pub compression: ParquetCompression;

        /// Sets the maximum number of rows in a row group. Default: 65,536. Small row groups make shuffled reading
        /// fast.
        pub row_group_rows(rows: usize) => row_group_rows = rows.max(1);

        /// Sets the approximate maximum size of an encoded row group, in bytes, which is held in memory. Default: 64
        /// MiB.
        pub row_group_bytes(bytes: usize) => row_group_bytes = bytes.max(1);

        /// Sets whether to write repeated values once, in a dictionary, if that is smaller. Default: true.
        ///
        /// Arrays of floating-point numbers never have a dictionary.
        pub dictionary: bool;

        /// Sets whether to split floating-point numbers into streams of their first bytes, their second bytes, and so
        /// on. Default: false.
        ///
        /// Such columns have no dictionary. Activations and features compress far better this way.
        pub byte_stream_split: bool;

        /// Sets whether to write an index of the pages in each column, with their minimum and maximum values.
        ///
        /// Default: true.
        pub page_index: bool;

        /// Sets the columns to those of this element. Its values are ignored.
        pub example(example: Element) => columns = Declared::Example(example);

        /// Sets the threads that encode the columns of a row group concurrently. The output does not depend on them.
        pub(crate) pool(pool: Arc<ThreadPool>) => pool = Some(pool);

        /// Sets the columns.
        pub(crate) columns(columns: Vec<(Name, Kind)>) => columns = Declared::Columns(columns);
    }

    fn properties(&self, rows: &Rows) -> Result<WriterProperties> {
        let statistics = if self.page_index { EnabledStatistics::Page } else { EnabledStatistics::Chunk };
        let mut builder = WriterProperties::builder()
            .set_compression(self.compression.codec()?)
            .set_max_row_group_row_count(Some(self.row_group_rows))
            .set_max_row_group_bytes(Some(self.row_group_bytes))
            .set_dictionary_enabled(self.dictionary)
            .set_offset_index_disabled(!self.page_index)
            .set_statistics_enabled(statistics);
        let schema = ArrowSchemaConverter::new().convert(&rows.schema()).map_err(failed)?;
        for (column, kind) in schema.columns().iter().zip(leaves(rows)) {
            builder = self.column(builder, column.path(), &kind);
        }
        Ok(builder.build())
    }

    /// Sets the properties specific to a column of numbers.
    fn column(&self, builder: WriterPropertiesBuilder, path: &ColumnPath, kind: &Kind) -> WriterPropertiesBuilder {
        let (dtype, is_array) = match kind {
            Kind::Array(dtype, _) | Kind::Empty(dtype) => (*dtype, true),
            Kind::Number(dtype) => (*dtype, false),
            Kind::Logical(data_type) => match fixed(data_type) {
                Some((dtype, _)) => (dtype, true),
                None => return builder,
            },
            _ => return builder,
        };
        let is_float = matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64);
        let mut builder = builder;
        if is_array {
            // Searches for rows by the maximum of an array are unlikely.
            builder = builder.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        if is_float && (is_array || self.byte_stream_split) {
            // Floats rarely repeat.
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
        }
        if is_float && self.byte_stream_split {
            builder = builder.set_column_encoding(path.clone(), Encoding::BYTE_STREAM_SPLIT);
        }
        builder
    }
}

/// Maximum size of a batch of rows to encode. The columns are inferred from the first batch.
const ROWS: usize = 1024;
const BYTES: usize = 8 << 20;

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file in `out`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a level that the codec does not have.
    pub fn new(out: W, options: ParquetWriterOptions) -> Result<Self> {
        options.compression.codec()?;
        let rows = Rows::new(ROWS.min(options.row_group_rows), BYTES, options.columns.columns()?);
        Ok(Self { rows, state: State::Waiting(out), options })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The errors listed for the type.
    pub fn write(&mut self, row: &Element) -> Result<()> {
        if matches!(self.state, State::Failed) {
            return Err(failed_before());
        }
        let Some(batch) = self.rows.push(row).inspect_err(|_| self.state = State::Failed)? else { return Ok(()) };
        self.writer()?.write(&batch).inspect_err(|_| self.state = State::Failed).map_err(failed)
    }

    /// Returns the number of bytes written to `out`, plus an estimate for the rows held in memory.
    pub fn estimated_bytes(&self) -> u64 {
        let written = if let State::Writing(writer) = &self.state { writer.estimated_bytes() } else { 0 };
        (written + self.rows.bytes) as u64
    }

    /// Finishes the file and returns the output.
    ///
    /// # Errors
    /// The errors listed for the type.
    pub fn finish(mut self) -> Result<W> {
        let last = self.rows.take()?;
        let writer = self.writer()?;
        if let Some(batch) = last {
            writer.write(&batch).map_err(failed)?;
        }
        match mem::replace(&mut self.state, State::Failed) {
            State::Writing(writer) => writer.into_inner().map_err(failed),
            _ => Err(failed_before()),
        }
    }

    /// Returns the writer of row groups, created once the columns are known.
    fn writer(&mut self) -> Result<&mut RowGroups<W>> {
        if let State::Waiting(_) = self.state {
            let properties = self.options.properties(&self.rows)?;
            if let State::Waiting(out) = mem::replace(&mut self.state, State::Failed) {
                let pool = self.options.pool.clone();
                let writer = RowGroups::new(out, self.rows.schema(), properties, pool).map_err(failed)?;
                self.state = State::Writing(Box::new(writer));
            }
        }
        if let State::Writing(writer) = &mut self.state { Ok(writer) } else { Err(failed_before()) }
    }
}

#[cold]
fn failed_before() -> Error {
    Error::config("this file could not be written before: it ends here")
}

#[cold]
fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) if source.is::<std::io::Error>() => {
            Error::new(ErrorKind::Io, source.to_string()).caused_by(source)
        }
        other => Error::data(other.to_string()),
    }
}

impl<W: Write + Send> fmt::Debug for ParquetWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetWriter").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Returns the kind of each leaf column, in the order of Arrow's leaves.
fn leaves(rows: &Rows) -> Vec<Kind> {
    let mut leaves = Vec::new();
    for (_, kind) in rows.columns.iter().flat_map(|columns| &columns.fields) {
        collect(kind, &mut leaves);
    }
    leaves
}

fn collect(kind: &Kind, leaves: &mut Vec<Kind>) {
    match kind {
        Kind::List(items) => collect(items, leaves),
        Kind::Tree(fields) => fields.iter().for_each(|(_, kind)| collect(kind, leaves)),
        leaf => leaves.push(leaf.clone()),
    }
}
