//! Parquet files as sources of rows.

mod ahead;
mod chunk;
mod condition;
#[cfg(feature = "spec")]
pub(super) mod entry;
mod fields;
mod footer;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(super) mod fuzz;
mod group;
mod row_groups;
#[cfg(test)]
mod tests;
mod thrift;
mod writer;

use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_schema_by_columns};

use self::chunk::Chunks;
use self::condition::Compared;
pub use self::condition::Condition;
use self::group::{File, Group};
pub use self::writer::{ParquetCompression, ParquetWriter, ParquetWriterOptions};
use super::abreast;
use super::arrow::block_files::{BlockFiles, Blocked, block_source};
use super::arrow::columns::{Chosen, Columns};
use super::arrow::partitions::Partitions;
use super::arrow::spans::{Place, Span, each_row};
use super::arrow::value::Memory;
use super::columns::to_names;
use super::contained::contained;
use super::content::Content;
#[cfg(any(test, fuzzing))]
use super::content::Contents;
use super::files::{self, FileId, Patterns};
use super::formats::Format;
use super::numbered::{reader, source_options};
use super::units::{Held, Key, Units};
use crate::cores;
use crate::element::{Name, Run};
use crate::error::{Error, Result};
use crate::fork::PerProcess;
use crate::mmap::Access;
use crate::startup::making;

/// Rows of Parquet files: a [`RandomAccess`](crate::dataset::map::RandomAccess) source of [`Element`](crate::Element).
///
/// | Parquet, as Arrow type | value |
/// |---|---|
/// | integers, floats | scalar of that type |
/// | bool | scalar `bool` |
/// | string | text |
/// | binary, fixed-size binary | bytes |
/// | list of numbers or bools without nulls | array with one dimension |
/// | list of fixed-size lists of numbers or bools, also nested | array with a dimension for each level |
/// | other list; map, as a list of `{key, value}` | list |
/// | struct | tree |
/// | dictionary | as its values |
/// | decimal | text, exact: `-12.50` |
/// | date | days (`i32`) or milliseconds (`i64`) since 1970 |
/// | timestamp, time, duration | integer in the unit of the column; timestamps since 1970 UTC |
/// | null | null |
///
/// Columns of several files are matched by name. A column that a file lacks is null in the file's rows. If the types of
/// a column differ between files, its values get a common type: wider integers and floats, the finer unit of times, or
/// structs with the fields of both.
///
/// Intervals and unions are [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) unless the column is excluded.
///
/// # Errors
/// Damage is [`ErrorKind::Data`](crate::ErrorKind::Data) with the file, and with the row group for damage in a row
/// group. Other row groups stay readable.
///
/// # Cost
/// Rows are decoded in spans. A row group of up to 16 MiB and 65,536 rows is a single span, and a larger row group is
/// split into several. Decoded spans are cached, up to [`cache_bytes`](ParquetOptions::cache_bytes), and shared by all
/// threads. Reading in order decodes every page once.
///
/// Shuffled reading of a dataset larger than the cache keeps only the rows that are due soon, as many as fit. A span is
/// decoded once for all of its kept rows. If the kept rows are a small part of the data, spans are decoded repeatedly,
/// and the report contains a warning with remedies. With a page index, a span is decoded without the spans before it.
///
/// A batch is copied from the spans column by column, without elements, if `batch` directly follows the source or
/// stages that only reorder or select columns. Each span is then decoded once per batch, in any order of rows. Values
/// are copies, because a view would keep a whole span of 16 MiB in memory.
pub struct Parquet(BlockFiles<Groups>);

/// Files and their selected row groups.
struct Groups {
    files: Vec<File>,
    groups: Vec<Group>,
    condition: Option<Condition>,
    /// Columns of all files.
    columns: Columns,
    /// Large groups that keep a decoder, oldest first.
    live: PerProcess<Mutex<VecDeque<usize>>>,
}

/// Maximum number of decoders kept between spans of large row groups.
const MAX_LIVE: usize = 16;

block_source!(Parquet);

reader! {
    /// Opens Parquet files, to read these columns: see [`Parquet`](crate::source::Parquet).
    ///
    /// ```
    /// use gristmill::prelude::*;
    /// # use gristmill::{Array, Element, sink::{Sink, SinkFormat}};
    /// # let dir = std::env::temp_dir().join(format!("gristmill-doc-open-parquet-{}", std::process::id()));
    /// # let mut sink = Sink::options(SinkFormat::Parquet).open(&dir)?;
    /// # sink.write(Element::new().with("id", Array::scalar(7_i64)).with("text", "oat"))?;
    /// # sink.finish()?;
    /// let batches = gristmill::parquet(&dir, ["id"])?.shuffle(42).to_iter().batch(32);
    /// assert_eq!(batches.collect()?[0].array("id")?.as_slice::<i64>()?, [7]);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    parquet: Parquet by columns
}

impl Groups {
    /// Records that a group keeps a decoder. Drops the oldest decoder if there are too many.
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

impl Blocked for Groups {
    const NAME: &'static str = "parquet";
    const BLOCKS: &'static str = "row groups";

    fn contents(&self) -> impl ExactSizeIterator<Item = &Content> {
        self.files.iter().map(|file| &file.chunks.content)
    }

    fn content(&self, file: usize) -> &Content {
        &self.files[file].chunks.content
    }

    fn rows(&self) -> impl ExactSizeIterator<Item = u64> {
        self.groups.iter().map(|group| group.rows)
    }

    fn spans(&self) -> u64 {
        self.groups.iter().map(Group::spans).sum()
    }

    fn decoded_bytes(&self) -> u64 {
        self.groups.iter().map(|group| group.bytes(&self.files[group.file])).fold(0, u64::saturating_add)
    }

    fn place(&self, at: usize, row: u64) -> Place {
        let (span, row, left) = self.groups[at].span_of(row);
        Place { key: (at, span), row, left }
    }

    fn span(&self, units: &Units<Span>, (at, wanted): Key, rows: &[Run]) -> Result<Held<Span>> {
        let group = &self.groups[at];
        let known = || units.get((at, wanted), each_row(rows));
        if let Some(held) = known() {
            return Ok(held);
        }
        let file = &self.files[group.file];
        let put = |span, batch: RecordBatch| {
            let bytes = batch.get_array_memory_size();
            let decoded = Span::new(&batch, group.file, &self.columns, Memory::Copied, bytes)?;
            Ok(units.put((at, span), decoded, each_row(if span == wanted { rows } else { &[] })))
        };
        // Another thread may decode the span while this thread waits for its turn.
        let decoded = making("a row group decoded", || group.decode(file, wanted, known, put))?;
        if group.is_large() {
            self.keep(at);
        }
        Ok(decoded)
    }

    fn path(&self, (at, _): Key) -> &Path {
        &self.files[self.groups[at].file].path
    }

    fn pages(&self, (at, span): Key) -> (usize, impl IntoIterator<Item = Range<u64>>) {
        let group = &self.groups[at];
        (group.file, group.pages(&self.files[group.file], span))
    }

    fn params(&self) -> String {
        let condition: String = self.condition.iter().map(|it| format!(", row groups where {it}")).collect();
        condition + &self.columns.params()
    }
}

/// Options for opening [`Parquet`] files.
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct ParquetOptions {
    columns: Option<Vec<Name>>,
    hive_partitioning: Option<bool>,
    condition: Option<Condition>,
    cache_bytes: usize,
    access: Access,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        Self { columns: None, hive_partitioning: None, condition: None, cache_bytes: 256 << 20, access: Access::Normal }
    }
}

source_options!(ParquetOptions of Parquet, access at access);

impl ParquetOptions {
    setters! {
        /// Sets the columns to read, in this order. Default: all columns.
        ///
        /// `meta.url` is the field `url` of the struct `meta`, unless a column has this name. The struct then becomes a
        /// tree with only the listed fields.
        pub columns<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) => columns = Some(to_names(columns));

        /// Reads only row groups that may contain a row that satisfies `condition`, by the minimum and maximum in the
        /// footer. Row groups without statistics of the column are read. Files without the column are not.
        ///
        /// This is useful for files that are sorted by the column, at least roughly. Other rows of these row groups are
        /// read as well; add a `filter` to drop them. The column need not be among the columns to read.
        pub row_groups_where(condition: Condition) => condition = Some(condition);

        /// Sets the maximum memory for decoded rows, in bytes. Default: 256 MiB. Always keeps the latest span of rows.
        pub cache_bytes: usize;

        /// Sets whether folders named `key=value` become columns, as in Hive, Spark and DuckDB.
        ///
        /// By default, the folders between an opened folder and its files become columns. With `true`, all folders of a
        /// path become columns, and with `false`, none do. A column of integers is `i64`, and other columns are text.
        /// `__HIVE_DEFAULT_PARTITION__` is null. A column in the files with an equal name is not read.
        pub hive_partitioning(wanted: bool) => hive_partitioning = Some(wanted);
    }

    /// Opens files, globs or directories of `.parquet` files.
    ///
    /// # Errors
    /// If nothing is found, a footer is damaged, or the types of a column in two files have no common type.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the chosen columns are empty, repeated or missing in the
    /// data.
    pub fn open(self, patterns: impl Patterns) -> Result<Parquet> {
        let (read, partitions) = self.read(patterns)?;
        self.open_read(read, partitions)
    }

    fn read(&self, patterns: impl Patterns) -> Result<(Vec<Footer>, Partitions)> {
        let files = files::locate_below(patterns, Format::Parquet.endings())?;
        let partitions = Partitions::of(&files, self.hive_partitioning)?;
        let files: Vec<_> = files.into_iter().map(|(file, _)| file).collect();
        let footers = cores::try_map_on(abreast::ends(&files), files, |file| {
            let content = Content::open_end(&file, self.access)?;
            read_footer(file.into_path(), content)
        })?;
        Ok((footers, partitions))
    }

    /// Opens files in memory.
    #[cfg(any(test, fuzzing))]
    pub(super) fn open_contents(self, contents: Contents) -> Result<Parquet> {
        let footer = |(file, content): (crate::place::Location, _)| read_footer(file.into_path(), content);
        self.open_read(abreast::try_each(contents, footer)?, Partitions::default())
    }

    fn open_read(self, read: Vec<Footer>, partitions: Partitions) -> Result<Parquet> {
        let mut opened: Vec<(File, Chosen)> = Vec::with_capacity(read.len());
        let mut ids = Vec::with_capacity(read.len());
        for (path, chunks, metadata, id) in read {
            let (chosen, mask) = self.choose(&metadata, &partitions).map_err(|e| e.path(&path))?;
            opened.push((File { path, chunks, metadata, mask }, chosen));
            ids.push(id);
        }
        let files = opened.iter().map(|(file, chosen)| (&*file.path, chosen));
        let columns = Columns::of(self.columns.as_deref(), files, partitions)?;
        let names = columns.names();
        let files: Vec<File> = opened.into_iter().map(|(file, _)| file).collect();
        let mut groups = Vec::new();
        let condition = self.condition.as_ref().map(|condition| condition.of(&files, &columns)).transpose()?;
        for (at, file) in files.iter().enumerate() {
            for group in wanted(condition.as_ref(), file).map_err(|e| e.path(&file.path))? {
                groups.push(Group::new(at, file, group).map_err(|e| e.path(&file.path))?);
            }
        }
        let groups = Groups { files, groups, condition: self.condition, columns, live: PerProcess::default() };
        BlockFiles::new(groups, names, &ids, self.cache_bytes).map(Parquet)
    }

    /// Returns the columns to read, and the projection of their leaves.
    fn choose(&self, metadata: &ArrowReaderMetadata, partitions: &Partitions) -> Result<(Chosen, ProjectionMask)> {
        let (schema, leaves) = (metadata.schema(), metadata.parquet_schema());
        let is_column = |name: &str| schema.field_with_name(name).is_ok();
        let is_field = |name: &&Name| name.contains('.') && !is_column(name);
        let Some(names) = self.columns.as_deref().filter(|names| names.iter().any(|name| is_field(&name))) else {
            let chosen = Chosen::of(schema, self.columns.as_deref(), partitions)?;
            let mask = ProjectionMask::roots(leaves, chosen.places.iter().copied());
            return Ok((chosen, mask));
        };
        let (mut roots, mut wanted) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|name| !partitions.has(name)) {
            let parts: Vec<&str> = if is_column(name) { vec![name] } else { name.split('.').collect() };
            let before = wanted.len();
            wanted.extend(
                (0..leaves.num_columns())
                    .filter(|&leaf| leaves.column(leaf).path().parts().iter().take(parts.len()).eq(&parts)),
            );
            // A missing field is reported by the given name, even if its struct exists.
            let root = if wanted.len() > before { Name::new(parts[0]) } else { name.clone() };
            if parts.len() == 1 || !roots.contains(&root) {
                roots.push(root);
            }
        }
        let mask = ProjectionMask::leaves(leaves, wanted);
        let pruned = contained(|| {
            let file = metadata.metadata().file_metadata();
            parquet_to_arrow_schema_by_columns(leaves, mask.clone(), file.key_value_metadata())
                .map_err(|e| Error::data(e.to_string()))
        })?;
        Ok((Chosen { all: schema.clone(), ..Chosen::of(&pruned.into(), Some(&roots), partitions)? }, mask))
    }
}

/// A file with its parsed footer.
type Footer = (PathBuf, Chunks, ArrowReaderMetadata, FileId);

fn read_footer(path: PathBuf, content: Content) -> Result<Footer> {
    let id = content.id(&path);
    let chunks = Chunks::new(content);
    let metadata = footer::read(&chunks).map_err(|e| e.path(&path))?;
    Ok((path, chunks, metadata, id))
}

/// Returns the row groups to read.
fn wanted(condition: Option<&Compared<'_>>, file: &File) -> Result<Vec<usize>> {
    let all = 0..file.metadata.metadata().num_row_groups();
    let Some(condition) = condition else { return Ok(all.collect()) };
    let may_hold = contained(|| condition.may_hold(&file.metadata))?;
    Ok(all.filter(|&group| may_hold[group]).collect())
}
