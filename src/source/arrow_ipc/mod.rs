//! Arrow's IPC format: files, streams, Feather, folders of Hugging Face: rows by number.

mod batch;
mod features;
pub(crate) mod folder;
mod folder_writer;
mod frame;
mod layout;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use rayon::prelude::*;

use self::batch::Dictionaries;
pub use self::folder_writer::HuggingFaceWriter;
use self::layout::Layout;
pub use self::writer::{ArrowCompression, ArrowWriter, ArrowWriterOptions};
use super::arrow::columns;
use super::arrow::spans::{Place, Span, Spans, each_row};
use super::arrow::value::Memory;
use super::content::{self, Content};
use super::files::{self, FileId, Patterns};
use super::firsts::Firsts;
use super::format::Format;
use super::mmap::Access;
use super::units::{Held, Key, Units};
use crate::cores;
use crate::dataset::map::{Decoded, GetStacked, Many, RandomAccess, Shuffled};
use crate::dataset::{Blocks, Upcoming};
use crate::element::{Element, Name, Ragged, Run};
use crate::error::{Error, Result};
use crate::fork::OwnLock;

/// Rows of Arrow's IPC files and streams, by number: a [`RandomAccess`] source of [`Element`].
///
/// Also of the second version of Feather, which is the same format, and of folders that `Dataset.save_to_disk` of Hugging
/// Face's `datasets` wrote, whose files are read in the order that their `state.json` gives. Values are those of the table of
/// `Parquet`: numbers, text, bytes, lists as arrays of one dimension, lists of fixed size as more dimensions, structs as trees,
/// dictionaries as their values. Columns of the extension types `arrow.fixed_shape_tensor` and Hugging Face's `Array2D` to
/// `Array5D` are arrays of the shape that they have in the schema. A column of `uint16` that is marked as the extension type `gristmill.bfloat16` is `bfloat16`.
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
pub struct Arrow {
    files: Vec<File>,
    /// Over the record batches of all files.
    firsts: Firsts,
    /// The file of each record batch, and its number there.
    places: Vec<(u32, u32)>,
    columns: Vec<Name>,
    units: Units<Span>,
    identity: String,
}

struct File {
    path: PathBuf,
    content: Content,
    layout: Layout,
    /// The columns asked for, in that order.
    chosen: Vec<usize>,
    /// The dictionaries that were decoded last, which as a rule are those of all batches.
    dictionaries: OwnLock<Option<(usize, Arc<Dictionaries>)>>,
}

impl Arrow {
    /// Opens files, globs or folders: of Hugging Face, or of `.arrow` and `.feather` files.
    ///
    /// # Errors
    /// If nothing is found, a header is damaged, or two files differ in their columns.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> ArrowOptions {
        ArrowOptions::default()
    }

    /// Names of the columns that are read, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(Name::as_str)
    }
}

impl Spans for Arrow {
    fn names(&self) -> &[Name] {
        &self.columns
    }

    fn find(&self, row: u64) -> Result<Place> {
        let (at, row) = self.firsts.find(row)?;
        let (file, batch) = self.places[at];
        let left = self.files[file as usize].layout.batches[batch as usize].rows.saturating_sub(row);
        Ok(Place { key: (file as usize, batch.into()), row: row as usize, left: left as usize })
    }

    fn span(&self, key: Key, rows: &[Run]) -> Result<Held<Span>> {
        let (file, batch) = (&self.files[key.0], key.1 as usize);
        self.units.get_or_decode(key, each_row(rows), || {
            let (decoded, bytes) = file.decode(batch)?;
            // What was decompressed, or came from far away, may go when its memory is wanted.
            let memory = if file.is_mapped(batch) { Memory::Viewed } else { Memory::Copied };
            Ok(Span::new(&decoded, 0..self.columns.len(), memory, bytes))
        })
    }

    fn note(&self, key: Key, rows: &mut dyn Iterator<Item = usize>) {
        self.units.note(key, rows);
    }

    fn path(&self, (file, _): Key) -> Option<&Path> {
        Some(&self.files[file].path)
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

    fn decode(&self, at: usize) -> Result<(RecordBatch, usize)> {
        let batch = &self.layout.batches[at];
        let decoded = self.dictionaries(batch.dictionaries).and_then(|dictionaries| {
            batch::decode(&self.content, &self.layout.schema, batch, &dictionaries, &self.chosen)
        });
        decoded.map_err(|e| {
            Error::new(e.kind(), format!("record batch {at}: {}", e.message()))
                .path(&self.path)
                .offset(batch.frame.start)
        })
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

/// How [`Arrow`] files are opened.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct ArrowOptions {
    columns: Option<Vec<Name>>,
    cache_bytes: usize,
    access: Access,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self { columns: None, cache_bytes: 256 << 20, access: Access::Normal }
    }
}

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

    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens files, globs or folders: of Hugging Face, or of `.arrow` and `.feather` files.
    ///
    /// # Errors
    /// As [`Arrow::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is not there, is named twice, or none is
    /// named, and for a folder whose data sets are in folders of their own, the splits.
    pub fn open(self, patterns: impl Patterns) -> Result<Arrow> {
        let contents = content::open_all(folder::expand(patterns)?, Format::Arrow.endings(), self.access)?;
        self.open_contents(contents)
    }

    /// The same, of files that are in memory already.
    pub(super) fn open_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<Arrow> {
        let open = |(path, content)| self.open_file(path, content);
        let opened = cores::on_all(|| contents.into_par_iter().map(open).collect::<Result<Vec<_>>>())?;
        let (files, ids): (Vec<File>, Vec<FileId>) = opened.into_iter().unzip();
        let columns = columns::names(&files[0].layout.schema, &files[0].chosen);
        columns::same(files.iter().map(|file| (&*file.path, &*file.layout.schema, &*file.chosen)))?;
        let batches = || files.iter().flat_map(|file| &file.layout.batches);
        let firsts = Firsts::of(batches().map(|batch| batch.rows))?;
        let place = |at: usize, file: &File| (0..file.layout.batches.len()).map(move |batch| (at as u32, batch as u32));
        let places = files.iter().enumerate().flat_map(|(at, file)| place(at, file)).collect();
        let identity = format!("{}, columns=[{}]", files::identity(&ids), columns.join(", "));
        let bytes = files.iter().map(File::decoded_bytes).sum();
        let units = Units::new(self.cache_bytes, firsts.len(), bytes);
        Ok(Arrow { files, firsts, places, columns, units, identity })
    }

    fn open_file(&self, path: PathBuf, content: Content) -> Result<(File, FileId)> {
        let id = content.id(&path)?;
        let layout = layout::read(&content).map_err(|e| e.path(&path))?;
        let chosen = columns::choose(&layout.schema, self.columns.as_deref()).map_err(|e| e.path(&path))?;
        Ok((File { path, content, layout, chosen, dictionaries: OwnLock::default() }, id))
    }
}

impl RandomAccess for Arrow {
    type Record = Element;

    fn len(&self) -> u64 {
        self.firsts.len()
    }

    fn is_native(&self) -> bool {
        true
    }

    fn read(&self, index: u64) -> Result<Element> {
        self.row(index, &mut None)
    }

    fn read_many(&self, indices: &[u64]) -> Many<Element> {
        self.rows(indices)
    }

    fn has_columns(&self) -> bool {
        true
    }

    fn read_stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        self.stacked(indices)
    }

    fn read_ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        self.ragged(indices, names)
    }

    fn reads_far(&self) -> bool {
        content::any_far(self.files.iter().map(|file| &file.content))
    }

    fn looks_ahead(&self) -> Option<u64> {
        Some(self.units.looks_ahead(self.reads_far()))
    }

    /// Each record batch once for all of its rows.
    fn will_read(&self, next: Upcoming<'_>) {
        self.units.tell(next, |index| self.find(index).ok().map(|place| (place.key, place.row)));
        if !self.reads_far() {
            return;
        }
        let mut told = HashSet::new();
        let batches = next.indices().iter().filter_map(|&index| Some(self.firsts.find(index).ok()?.0));
        let frames = batches.filter(|&at| told.insert(at)).map(|at| {
            let (file, batch) = self.places[at];
            let frame = self.files[file as usize].layout.batches[batch as usize].frame;
            (file as usize, frame.start..frame.end)
        });
        content::will_read(frames, next, |at| &self.files[at].content);
    }

    fn take_decoded(&self) -> Option<Decoded> {
        self.units.take_decoded()
    }

    fn blocks(&self) -> Option<Blocks> {
        self.units.blocks((0..self.places.len()).map(|at| self.firsts.count(at)))
    }

    fn if_shuffled(&self) -> Option<Shuffled> {
        self.units.if_shuffled(self.places.len() as u64)
    }

    fn name(&self) -> &'static str {
        "arrow"
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.units.budget() as u64)
    }
}

impl fmt::Debug for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrow({} rows, {} record batches, {} files)", self.len(), self.places.len(), self.files.len())
    }
}
