//! Parquet files: rows by number.

mod ahead;
mod chunk;
mod condition;
mod fields;
mod footer;
mod group;
mod row_groups;
#[cfg(test)]
mod tests;
mod thrift;
mod writer;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arrow::array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use rayon::prelude::*;

use self::chunk::Chunks;
pub use self::condition::Condition;
use self::group::{File, Group};
pub use self::writer::{ParquetCompression, ParquetWriter, ParquetWriterOptions};
use super::arrow::columns;
use super::arrow::spans::{Place, Span, Spans, each_row};
use super::arrow::value::Memory;
use super::contained::contained;
use super::content::{self, Content};
use super::files::{self, FileId, Patterns};
use super::firsts::Firsts;
use super::mmap::Access;
use super::units::{Held, Key, Units};
use crate::cores;
use crate::dataset::map::{Decoded, GetStacked, Many, RandomAccess, Shuffled};
use crate::dataset::{Blocks, Upcoming};
use crate::element::{Element, Name, Ragged, Run};
use crate::error::Result;
use crate::fork::PerProcess;
use crate::startup::making;

/// Rows of Parquet files, by number: a [`RandomAccess`] source of [`Element`].
///
/// | Parquet, as Arrow has it | value |
/// |---|---|
/// | integers, floats | scalar of the same type |
/// | bool | scalar `bool` |
/// | string | text |
/// | binary, fixed-size binary | bytes |
/// | list of numbers or bools without nulls | array of one dimension |
/// | lists of fixed size of those, in such a list or one in another | array with a dimension for each |
/// | other list; map, as a list of `{key, value}` | list |
/// | struct | tree |
/// | dictionary | as its values |
/// | decimal | text, exact: `-12.50` |
/// | date | days (`i32`) or milliseconds (`i64`) since 1970 |
/// | timestamp, time, duration | whole number in the unit of the column; timestamps since 1970 UTC |
/// | null | null |
///
/// Intervals and unions are [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) unless the column is left out.
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with the file, and the row group if it is in one: the others are read.
///
/// # Cost
/// Rows are decoded in spans: a row group of up to 16 MiB and 65,536 rows is one, a larger one is several. Decoded spans
/// are kept, up to [`cache_bytes`](ParquetOptions::cache_bytes), shared by all threads. Reading in order decodes every
/// page once. Shuffled reading of a data set larger than the cache keeps the rows that a pass asks for soon, as many as have room there,
/// and decodes a span once for all of those. Where they are a small part of the data, so that it is decoded again and again, the report
/// says so: `block_shuffle` instead, or write small row groups, or page indices, by which a span is found without
/// decoding what is before it. A batch straight
/// behind it, or behind stages of order and choices of columns, is copied out of the spans column by column, without elements:
/// each span is decoded once for the batch, in whatever order its rows come. Values are copies: one that were a view would keep
/// 16 MiB for itself.
pub struct Parquet {
    files: Vec<File>,
    groups: Vec<Group>,
    /// Over the groups.
    firsts: Firsts,
    columns: Vec<Name>,
    units: Units<Span>,
    /// Large groups that keep a decoder, oldest first.
    live: PerProcess<Mutex<VecDeque<usize>>>,
    identity: String,
}

/// Decoders that are kept between two spans of a large row group.
const MAX_LIVE: usize = 16;

impl Parquet {
    /// Opens files, globs or directories (of `.parquet` files), all columns.
    ///
    /// # Errors
    /// If nothing is found, a footer is damaged, or two files differ in their columns.
    pub fn open(patterns: impl Patterns) -> Result<Self> {
        Self::options().open(patterns)
    }

    /// The options, to change before opening.
    pub fn options() -> ParquetOptions {
        ParquetOptions::default()
    }

    /// Names of the columns that are read, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(Name::as_str)
    }

    /// Notes that a group keeps a decoder, and drops that of the one that has had its longest.
    fn keep(&self, at: usize) {
        let mut live = self.live.lock();
        if let Some(known) = live.iter().position(|&other| other == at) {
            live.remove(known);
        }
        live.push_back(at);
        if live.len() > MAX_LIVE
            && let Some(oldest) = live.pop_front()
        {
            self.groups[oldest].rest();
        }
    }
}

impl Spans for Parquet {
    fn names(&self) -> &[Name] {
        &self.columns
    }

    fn find(&self, row: u64) -> Result<Place> {
        let (at, row) = self.firsts.find(row)?;
        let (span, row, left) = self.groups[at].span_of(row);
        Ok(Place { key: (at, span), row, left })
    }

    fn span(&self, (at, wanted): Key, rows: &[Run]) -> Result<Held<Span>> {
        let group = &self.groups[at];
        let known = || self.units.get((at, wanted), each_row(rows));
        if let Some(held) = known() {
            return Ok(held);
        }
        let file = &self.files[group.file];
        let put = |span, batch: RecordBatch| {
            let bytes = batch.get_array_memory_size();
            let decoded = Span::new(&batch, file.order.iter().copied(), Memory::Copied, bytes);
            self.units.put((at, span), decoded, each_row(if span == wanted { rows } else { &[] }))
        };
        // Another thread may decode it while this one waits for its turn.
        let decoded = making("a row group decoded", || group.decode(file, wanted, known, put))?;
        if group.is_large() {
            self.keep(at);
        }
        Ok(decoded)
    }

    fn note(&self, key: Key, rows: &mut dyn Iterator<Item = usize>) {
        self.units.note(key, rows);
    }

    fn path(&self, (at, _): Key) -> Option<&Path> {
        Some(&self.files[self.groups[at].file].path)
    }
}

/// How [`Parquet`] files are opened.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct ParquetOptions {
    columns: Option<Vec<Name>>,
    condition: Option<Condition>,
    cache_bytes: usize,
    access: Access,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self { columns: None, condition: None, cache_bytes: 256 << 20, access: Access::Normal }
    }
}

impl ParquetOptions {
    /// The columns to read, in this order; all of them at first. `meta.url` is the field `url` of the struct `meta`, unless a
    /// column has a name with a dot: the struct is then a tree of the fields that are named.
    pub fn columns<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(columns.into_iter().map(|c| Name::new(c.as_ref())).collect());
        self
    }

    /// Only the row groups that may hold a row of which this is true, by the least and greatest values in the footer: what is
    /// left of a file that is sorted by the column, or nearly so. Their other rows are read, too; a `filter` behind it
    /// drops them. The column need not be among those that are read.
    pub fn row_groups_where(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Bytes of decoded rows that are kept; 256 MiB at first. The latest span of rows is kept whatever its size.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// How the files will be read.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens files, globs or directories (of `.parquet` files).
    ///
    /// # Errors
    /// As [`Parquet::open`]; [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is not there, is named twice, or none is named.
    pub fn open(self, patterns: impl Patterns) -> Result<Parquet> {
        let contents = content::open_all(patterns, &[".parquet"], self.access)?;
        self.open_contents(contents)
    }

    /// The same, of files that are in memory already.
    pub(super) fn open_contents(self, contents: Vec<(PathBuf, Content)>) -> Result<Parquet> {
        let open = |(path, content)| self.open_file(path, content);
        let opened = cores::on_all(|| contents.into_par_iter().map(open).collect::<Result<Vec<_>>>())?;
        let (files, ids): (Vec<File>, Vec<FileId>) = opened.into_iter().unzip();
        let columns = columns::names(files[0].metadata.schema(), &files[0].chosen);
        columns::same(files.iter().map(|file| (&*file.path, &**file.metadata.schema(), &*file.chosen)))?;
        let mut groups = Vec::new();
        for (at, file) in files.iter().enumerate() {
            for group in self.wanted(file).map_err(|e| e.path(&file.path))? {
                groups.push(Group::new(at, file, group).map_err(|e| e.path(&file.path))?);
            }
        }
        let firsts = Firsts::of(groups.iter().map(|group| group.rows))?;
        let mut identity = format!("{}, columns=[{}]", files::identity(&ids), columns.join(", "));
        if let Some(condition) = &self.condition {
            identity += &format!(", row groups where {condition}");
        }
        let bytes = groups.iter().map(|group| group.bytes(&files[group.file])).fold(0, u64::saturating_add);
        let units = Units::new(self.cache_bytes, firsts.len(), bytes);
        Ok(Parquet { files, groups, firsts, columns, units, live: PerProcess::default(), identity })
    }

    fn open_file(&self, path: PathBuf, content: Content) -> Result<(File, FileId)> {
        let id = content.id(&path)?;
        let chunks = Chunks::new(content);
        let metadata = footer::read(&chunks).map_err(|e| e.path(&path))?;
        let (chosen, mask) = self.choose(&metadata).map_err(|e| e.path(&path))?;
        // A batch has the chosen columns in the order of the file.
        let place = |column: &usize| chosen.iter().filter(|other| *other < column).count();
        let order = chosen.iter().map(place).collect();
        Ok((File { path, chunks, metadata, mask, order, chosen }, id))
    }

    /// Places of the columns to read, and what is read of them.
    fn choose(&self, metadata: &ArrowReaderMetadata) -> Result<(Vec<usize>, ProjectionMask)> {
        let (schema, leaves) = (metadata.schema(), metadata.parquet_schema());
        let is_column = |name: &str| schema.field_with_name(name).is_ok();
        let Some(names) = self.columns.as_deref().filter(|names| names.iter().any(|name| !is_column(name))) else {
            let chosen = columns::choose(schema, self.columns.as_deref())?;
            let mask = ProjectionMask::roots(leaves, chosen.iter().copied());
            return Ok((chosen, mask));
        };
        let (mut roots, mut wanted) = (Vec::new(), Vec::new());
        for name in names {
            let parts: Vec<&str> = if is_column(name) { vec![name] } else { name.split('.').collect() };
            let before = wanted.len();
            wanted.extend(
                (0..leaves.num_columns()).filter(|&leaf| starts_with(leaves.column(leaf).path().parts(), &parts)),
            );
            // Whether the struct is there or not, what is missing is told by the name that was given.
            let root = if wanted.len() > before { Name::new(parts[0]) } else { name.clone() };
            if parts.len() == 1 || !roots.contains(&root) {
                roots.push(root);
            }
        }
        Ok((columns::choose(schema, Some(&roots))?, ProjectionMask::leaves(leaves, wanted)))
    }

    /// The row groups to read.
    fn wanted(&self, file: &File) -> Result<Vec<usize>> {
        let all = 0..file.metadata.metadata().num_row_groups();
        let Some(condition) = &self.condition else { return Ok(all.collect()) };
        let may_hold = contained(|| condition.may_hold(&file.metadata))?;
        Ok(all.filter(|&group| may_hold[group]).collect())
    }
}

/// Whether a leaf lies in the field at this path.
fn starts_with(leaf: &[String], path: &[&str]) -> bool {
    leaf.len() >= path.len() && leaf.iter().zip(path).all(|(a, b)| a == b)
}

impl RandomAccess for Parquet {
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
        content::any_far(self.files.iter().map(|file| file.chunks.content()))
    }

    fn looks_ahead(&self) -> Option<u64> {
        Some(self.units.looks_ahead(self.reads_far()))
    }

    /// The pages of each span, once for all of its rows.
    fn will_read(&self, next: Upcoming<'_>) {
        self.units.tell(next, |index| self.find(index).ok().map(|place| (place.key, place.row)));
        if !self.reads_far() {
            return;
        }
        let mut spans = Vec::new();
        for (at, row) in next.indices().iter().filter_map(|&index| self.firsts.find(index).ok()) {
            let (span, ..) = self.groups[at].span_of(row);
            if spans.last() != Some(&(at, span)) {
                spans.push((at, span));
            }
        }
        let mut told = HashSet::new();
        spans.retain(|&span| told.insert(span));
        let pages = spans.into_iter().flat_map(|(at, span)| {
            let group = &self.groups[at];
            let pages = group.pages(&self.files[group.file], span);
            pages.into_iter().map(move |pages| (group.file, pages))
        });
        content::will_read(pages, next, |at| self.files[at].chunks.content());
    }

    fn take_decoded(&self) -> Option<Decoded> {
        self.units.take_decoded()
    }

    fn blocks(&self) -> Option<Blocks> {
        self.units.blocks(self.groups.iter().map(|group| group.rows))
    }

    fn if_shuffled(&self) -> Option<Shuffled> {
        self.units.if_shuffled(self.groups.iter().map(Group::spans).sum())
    }

    fn name(&self) -> &'static str {
        "parquet"
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

impl fmt::Debug for Parquet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parquet({} rows, {} row groups, {} files)", self.len(), self.groups.len(), self.files.len())
    }
}
