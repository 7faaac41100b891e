//! Arrow's IPC format: files, streams, Feather, folders of Hugging Face: rows by number.

mod batch;
mod features;
pub(crate) mod folder;
mod folder_writer;
mod frame;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(in crate::source) mod fuzz;
mod layout;
#[cfg(test)]
mod tests;
mod writer;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;

use self::batch::Dictionaries;
pub use self::folder_writer::HuggingFaceWriter;
use self::layout::Layout;
pub use self::writer::{ArrowCompression, ArrowWriter, ArrowWriterOptions};
use super::abreast;
use super::arrow::block_files::{BlockFiles, Blocked, block_source};
#[cfg(feature = "spec")]
use super::arrow::columns::all_names;
use super::arrow::columns::{Chosen, Columns};
use super::arrow::partitions::Partitions;
use super::arrow::spans::{Place, Span, each_row};
use super::arrow::value::Memory;
use super::contained::contained;
use super::content::{self, Content, Contents};
use super::files::{self, FileId, Patterns};
use super::formats::Format;
use super::numbered::source_options;
use super::units::{Held, Key, Units};
use crate::element::{Name, Run};
use crate::error::Result;
use crate::fork::OwnLock;
use crate::mmap::Access;

/// Rows of Arrow's IPC files and streams, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`](crate::Element).
///
/// Also of the second version of Feather, which is the same format, and of folders that `Dataset.save_to_disk` of Hugging
/// Face's `datasets` wrote, whose files are read in the order that their `state.json` gives. Values are those of the table of
/// `Parquet`: numbers, text, bytes, lists as arrays of one dimension, lists of fixed size as more dimensions, structs as trees,
/// dictionaries as their values. Columns of the extension types `arrow.fixed_shape_tensor` and Hugging Face's `Array2D` to
/// `Array5D` are arrays of the shape that they have in the schema. Columns of several files go by name and are widened, as those of `Parquet`. A column of `uint16` that is marked as the extension type `gristmill.bfloat16` is `bfloat16`.
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with the file, and the record batch if it is in one: the others are read.
/// The format has no checksums: changed numbers are not noticed. The first version of Feather, numbers in big-endian order,
/// and columns of intervals, unions, runs and list views are [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// # Cost
/// Opening reads the header of every record batch. Batches that are not compressed, as those of Hugging Face, stay where they
/// are: their first reading checks them once (text must be UTF-8), and arrays and bytes are views of the file.
/// Batches of LZ4 or Zstandard are decoded whole, and kept up to [`cache_bytes`](ArrowOptions::cache_bytes), shared by all
/// threads. Shuffled reading of more than that keeps the rows that a pass asks for soon, as many as have room there, and decodes a batch
/// once for all of those: the larger the part of the data that has room, the less often.
///
/// # Source
/// <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>; folders as `datasets`
/// 5.0.1 writes them.
pub struct Arrow(BlockFiles<Batches>);

/// Files, and the record batches of them.
struct Batches {
    files: Vec<File>,
    /// The file of each record batch, and its number there.
    places: Vec<(u32, u32)>,
    /// The columns of all files.
    columns: Columns,
}

struct File {
    path: PathBuf,
    content: Content,
    layout: Layout,
    /// Places of the columns that are read.
    places: Vec<usize>,
    /// The dictionaries that were decoded last, which as a rule are those of all batches.
    dictionaries: OwnLock<Option<(usize, Arc<Dictionaries>)>>,
}

impl Arrow {
    /// Opens files, globs or folders: of Hugging Face, or of `.arrow` and `.feather` files.
    ///
    /// # Errors
    /// If nothing is found, a header is damaged, or no type holds the values of a column in two files.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }
}

block_source!(Arrow);

impl Batches {
    fn new(files: Vec<File>, columns: Columns) -> Self {
        let places = |(at, file): (usize, &File)| {
            (0..file.layout.batches.len()).map(move |batch| (at as u32, batch as u32)).collect::<Vec<_>>()
        };
        let places = files.iter().enumerate().flat_map(places).collect();
        Self { files, places, columns }
    }
}

impl Blocked for Batches {
    const NAME: &'static str = "arrow";
    const BLOCKS: &'static str = "record batches";

    fn contents(&self) -> impl ExactSizeIterator<Item = &Content> {
        self.files.iter().map(|file| &file.content)
    }

    fn content(&self, file: usize) -> &Content {
        &self.files[file].content
    }

    fn rows(&self) -> impl ExactSizeIterator<Item = u64> {
        self.places.iter().map(|&(file, batch)| self.files[file as usize].layout.batches[batch as usize].rows)
    }

    fn spans(&self) -> u64 {
        self.places.len() as u64
    }

    fn decoded_bytes(&self) -> u64 {
        self.files.iter().map(File::decoded_bytes).sum()
    }

    fn place(&self, at: usize, row: u64) -> Place {
        let (file, batch) = self.places[at];
        let left = self.files[file as usize].layout.batches[batch as usize].rows.saturating_sub(row);
        Place { key: (file as usize, batch.into()), row: row as usize, left: left as usize }
    }

    fn span(&self, units: &Units<Span>, key: Key, rows: &[Run]) -> Result<Held<Span>> {
        let (file, batch) = (&self.files[key.0], key.1 as usize);
        units.get_or_decode(key, each_row(rows), || {
            // What was decompressed, or came from far away, may go when its memory is wanted.
            let memory = if file.is_mapped(batch) { Memory::Viewed } else { Memory::Copied };
            file.decode(batch, |decoded, bytes| Span::new(decoded, key.0, &self.columns, memory, bytes))
        })
    }

    fn path(&self, (file, _): Key) -> &Path {
        &self.files[file].path
    }

    fn params(&self) -> String {
        self.columns.params()
    }

    fn pages(&self, (file, batch): Key) -> (usize, impl IntoIterator<Item = Range<u64>>) {
        let frame = self.files[file].layout.batches[batch as usize].frame;
        (file, Some(frame.start..frame.end))
    }
}

impl File {
    /// Whether a record batch is read where it lies.
    fn is_mapped(&self, batch: usize) -> bool {
        self.content.here().is_some() && !self.layout.batches[batch].is_compressed
    }

    /// Bytes of the record batches that are decoded, as they are in the file.
    fn decoded_bytes(&self) -> u64 {
        let batches = self.layout.batches.iter().enumerate().filter(|(at, _)| !self.is_mapped(*at));
        batches.map(|(_, batch)| batch.frame.end - batch.frame.start).sum()
    }

    /// Decodes a record batch, and gives it to `make` with the bytes that it takes.
    fn decode(&self, at: usize, make: impl FnOnce(&RecordBatch, usize) -> Result<Span>) -> Result<Span> {
        let batch = &self.layout.batches[at];
        let decoded = self.dictionaries(batch.dictionaries).and_then(|dictionaries| {
            let schema = &self.layout.schema;
            let (decoded, bytes) = batch::decode(&self.content, schema, batch, &dictionaries, &self.places)?;
            contained(|| make(&decoded, bytes))
        });
        decoded.map_err(|e| e.of(&format!("record batch {at}")).path(&self.path).offset(batch.frame.start))
    }

    fn dictionaries(&self, wanted: usize) -> Result<Arc<Dictionaries>> {
        let mut latest = self.dictionaries.lock();
        if let Some((_, known)) = latest.as_ref().filter(|(number, _)| *number == wanted) {
            return Ok(known.clone());
        }
        let list = &self.layout.dictionaries[wanted];
        let decoded = Arc::new(batch::dictionaries(&self.content, &self.layout.schema, list)?);
        *latest = Some((wanted, decoded.clone()));
        Ok(decoded)
    }
}

/// Options with which [`Arrow`] files are opened.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct ArrowOptions {
    columns: Option<Vec<Name>>,
    hive_partitioning: Option<bool>,
    cache_bytes: usize,
    access: Access,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self { columns: None, hive_partitioning: None, cache_bytes: 256 << 20, access: Access::Normal }
    }
}

source_options!(ArrowOptions of Arrow, access at access);

impl ArrowOptions {
    /// The columns to read, in this order, by their top-level names; all of them at first.
    pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(columns.into_iter().map(|c| Name::new(c.as_ref())).collect());
        self
    }

    /// Bytes of decoded record batches that are kept; 256 MiB at first. Of those that are not compressed only what Arrow needs
    /// to find their values counts. The latest is kept whatever its size.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether folders named `key=value` give columns, as Hive, Spark and DuckDB write them. At first the folders between a folder
    /// that is opened and its files do; with `true` all folders of a path, with `false` none. A column of whole numbers is `i64`, others are
    /// text; `__HIVE_DEFAULT_PARTITION__` is null. A column of the files that has the name of such a column is not read.
    pub fn hive_partitioning(mut self, wanted: bool) -> Self {
        self.hive_partitioning = Some(wanted);
        self
    }

    /// Opens files, globs or folders: of Hugging Face, or of `.arrow` and `.feather` files.
    ///
    /// # Errors
    /// As [`Arrow::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is not there, is named twice, or none is
    /// named, and for a folder whose data sets are in folders of their own, the splits.
    pub fn open(self, patterns: impl Patterns) -> Result<Arrow> {
        let (read, partitions) = self.read(patterns)?;
        self.open_read(read, partitions)
    }

    /// The same, where `choose` is given the names of all columns and returns those to read.
    #[cfg(feature = "spec")]
    pub(crate) fn open_choosing(
        self,
        patterns: impl Patterns,
        choose: impl FnOnce(Vec<String>) -> Result<Vec<String>>,
    ) -> Result<Arrow> {
        let (read, partitions) = self.read(patterns)?;
        let names = all_names(read.iter().map(|(_, _, layout, _)| &*layout.schema), &partitions);
        self.columns(choose(names)?).open_read(read, partitions)
    }

    fn read(&self, patterns: impl Patterns) -> Result<(Vec<Headers>, Partitions)> {
        let files = files::locate_below(folder::expand(patterns)?, Format::Arrow.endings())?;
        let partitions = Partitions::of(&files, self.hive_partitioning)?;
        let files = files.into_iter().map(|(file, _)| file).collect();
        Ok((read_headers(content::open_each(files, self.access)?)?, partitions))
    }

    /// Opens files that are in memory already.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_contents(self, contents: Contents) -> Result<Arrow> {
        self.open_read(read_headers(contents)?, Partitions::default())
    }

    fn open_read(self, read: Vec<Headers>, partitions: Partitions) -> Result<Arrow> {
        let mut opened: Vec<(File, Chosen)> = Vec::with_capacity(read.len());
        let mut ids = Vec::with_capacity(read.len());
        for (path, content, layout, id) in read {
            let chosen = Chosen::of(&layout.schema, self.columns.as_deref(), &partitions).map_err(|e| e.path(&path))?;
            let places = chosen.places.clone();
            opened.push((File { path, content, layout, places, dictionaries: OwnLock::default() }, chosen));
            ids.push(id);
        }
        let files = opened.iter().map(|(file, chosen)| (&*file.path, chosen));
        let columns = Columns::of(self.columns.as_deref(), files, partitions)?;
        let names = columns.names();
        let files = opened.into_iter().map(|(file, _)| file).collect();
        BlockFiles::new(Batches::new(files, columns), names, &ids, self.cache_bytes).map(Arrow)
    }
}

/// A file whose headers have been read.
type Headers = (PathBuf, Content, Layout, FileId);

fn read_headers(contents: Contents) -> Result<Vec<Headers>> {
    abreast::try_each(contents, |(file, content)| {
        let path = file.into_path();
        let id = content.id(&path);
        let layout = layout::read(&content).map_err(|e| e.path(&path))?;
        Ok((path, content, layout, id))
    })
}
