//! Arrow IPC files and streams, Feather files and Hugging Face folders: rows by number.

mod batch;
#[cfg(feature = "spec")]
pub(super) mod entry;
mod features;
pub(crate) mod folder;
mod folder_writer;
mod frame;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
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
use super::arrow::columns::{Chosen, Columns};
use super::arrow::partitions::Partitions;
use super::arrow::spans::{Place, Span, each_row};
use super::arrow::value::Memory;
use super::columns::to_names;
use super::contained::contained;
use super::content::{self, Content, Contents};
use super::files::{self, FileId, Patterns};
use super::formats::Format;
use super::numbered::{reader, source_options};
use super::units::{Held, Key, Units};
use crate::element::{Name, Run};
use crate::error::Result;
use crate::fork::OwnLock;
use crate::mmap::Access;

/// Rows of Arrow IPC files and streams, by number: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of
/// [`Element`](crate::Element).
///
/// Also reads version 2 of Feather, which is the IPC file format, and folders written by `Dataset.save_to_disk` of
/// Hugging Face's `datasets`. The files of such a folder are read in the order of its `state.json`.
///
/// Values are as in the table of `Parquet`: numbers, text and bytes; lists as arrays of one dimension, with another
/// dimension for each fixed-size list; structs as trees; dictionaries as their values. Columns of the extension type
/// `arrow.fixed_shape_tensor` and of Hugging Face's `Array2D` to `Array5D` are arrays of the shape in the schema. A
/// column of `uint16` with the extension type `gristmill.bfloat16` is `bfloat16`. Columns of several files are merged
/// by name and widened, as in `Parquet`.
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with the file, and with the record batch if the damage is
/// inside a batch. Other batches are still read. The format has no checksums, so changed numbers are not detected.
/// Version 1 of Feather, big-endian numbers, and columns of intervals, unions, runs and list views are
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// # Cost
/// Opening reads the header of every record batch. Uncompressed batches, such as Hugging Face's, are not copied: the
/// first read checks them once (text must be UTF-8), and arrays and bytes are views of the file.
///
/// Batches compressed by LZ4 or Zstandard are decoded whole and cached for all threads, up to
/// [`cache_bytes`](ArrowOptions::cache_bytes). For shuffled reads of more data than that, the cache holds the rows that
/// the pass needs soon, and a batch is decoded once for all of them. A larger cache means fewer decodes.
///
/// # Source
/// <https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc>; folders as
/// written by `datasets` 5.0.1.
pub struct Arrow(BlockFiles<Batches>);

/// Open files and their record batches.
struct Batches {
    files: Vec<File>,
    /// File of each record batch, and the number of the batch in the file.
    places: Vec<(u32, u32)>,
    /// Columns of all files.
    columns: Columns,
}

struct File {
    path: PathBuf,
    content: Content,
    layout: Layout,
    /// Indices of the columns to read.
    places: Vec<usize>,
    /// Dictionaries that were decoded last; usually all batches share them.
    dictionaries: OwnLock<Option<(usize, Arc<Dictionaries>)>>,
}

block_source!(Arrow);

reader! {
    /// Opens Arrow IPC files, to read these columns: see [`Arrow`](crate::source::Arrow).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-arrow-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::Arrow).open(&dir)?;
    /// # sink.write(Element::new().with("id", Array::scalar(7_i64)).with("text", "oat"))?;
    /// # sink.finish()?;
    /// let batches = gristmill::arrow(&dir, ["id"])?.shuffle(42).to_iter().batch(32);
    /// assert_eq!(batches.collect()?[0].array("id")?.as_slice::<i64>()?, [7]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    arrow: Arrow by columns
}

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
            // Decompressed or downloaded data is evicted when its memory is needed, so values must be copies.
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
    /// Returns true if a record batch is read as a view of the mapped file.
    fn is_mapped(&self, batch: usize) -> bool {
        self.content.here().is_some() && !self.layout.batches[batch].is_compressed
    }

    /// Returns the size in the file of the record batches that are decoded, in bytes.
    fn decoded_bytes(&self) -> u64 {
        let batches = self.layout.batches.iter().enumerate().filter(|(at, _)| !self.is_mapped(*at));
        batches.map(|(_, batch)| batch.frame.end - batch.frame.start).sum()
    }

    /// Decodes a record batch, and passes it to `make` with the memory it occupies in bytes.
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

/// Options to open [`Arrow`] files.
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
    setters! {
        /// Sets the columns to read, by top-level name, in this order; all columns by default.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => columns = Some(to_names(columns));

        /// Sets the size of the cache for decoded record batches, in bytes; 256 MiB by default.
        ///
        /// An uncompressed batch counts only with the memory that Arrow needs to locate its values. The most recent
        /// batch is kept regardless of its size.
        pub cache_bytes: usize;

        /// Sets which folders named `key=value` give columns, in the layout of Hive, Spark and DuckDB.
        ///
        /// By default, the folders between an opened folder and its files do; with `true`, all folders of a path; with
        /// `false`, none. A column of whole numbers is `i64`, any other is text; `__HIVE_DEFAULT_PARTITION__` is null.
        /// A column of a folder replaces a column of the files with this name.
        pub hive_partitioning(wanted: bool) => hive_partitioning = Some(wanted);
    }

    /// Opens files, globs or folders: Hugging Face folders, or folders of `.arrow` and `.feather` files.
    ///
    /// # Errors
    /// If nothing is found, a header is damaged, or the types of a column in two files have no common type. Also
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a column does not exist or is named twice, if the list of
    /// columns is empty, and for a folder with splits, each of which is a data set in a subfolder.
    pub fn open(self, patterns: impl Patterns) -> Result<Arrow> {
        let (read, partitions) = self.read(patterns)?;
        self.open_read(read, partitions)
    }

    fn read(&self, patterns: impl Patterns) -> Result<(Vec<Headers>, Partitions)> {
        let files = files::locate_below(folder::expand(patterns)?, Format::Arrow.endings())?;
        let partitions = Partitions::of(&files, self.hive_partitioning)?;
        let files = files.into_iter().map(|(file, _)| file).collect();
        Ok((read_headers(content::open_each(files, self.access)?)?, partitions))
    }

    /// Opens files that are already in memory.
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

/// A file and its headers.
type Headers = (PathBuf, Content, Layout, FileId);

fn read_headers(contents: Contents) -> Result<Vec<Headers>> {
    abreast::try_each(contents, |(file, content)| {
        let path = file.into_path();
        let id = content.id(&path);
        let layout = layout::read(&content).map_err(|e| e.path(&path))?;
        Ok((path, content, layout, id))
    })
}
