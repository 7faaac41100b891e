//! Files with records addressed by number, concatenated in order: the basis of the sources of all formats.

mod grouped;
mod named;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::PathBuf;

#[cfg_attr(not(feature = "formats"), allow(unused_imports, reason = "two formats are read so"))]
pub(super) use self::grouped::{Grouped, GroupedFiles};
pub(super) use self::named::{by_starts, named_source, reader, same_source, source_options};
use super::abreast;
use super::content::{self, Content, Contents};
use super::files::{self, FileId};
use super::firsts::Firsts;
use super::index_cache::{IndexCache, Records, load_or_find};
use super::starts::Starts;
use crate::dataset::Upcoming;
use crate::dataset::map::{Many, RandomAccess, SourceFacts};
use crate::element::{Buffer, Element};
use crate::error::{Error, Result};
use crate::place::Location;

/// A format with records addressed by number. The value holds the options, which apply to all files.
pub(crate) trait Numbered: Sized + Send + Sync {
    /// Type of the records.
    type Record: Payload;
    /// Per-file data besides the content, such as the positions of records.
    type Index: Send + Sync;

    /// Name of the source.
    const NAME: &'static str;
    /// True if the source builds batches from columns: see [`SourceFacts::has_columns`].
    const HAS_COLUMNS: bool = false;

    /// True if records of mapped files are views.
    const IS_VIEW: bool = false;

    /// Returns the number of records in a file.
    fn len(&self, file: &File<Self::Index>) -> u64;

    /// Reads a record of a file.
    fn read(&self, file: &File<Self::Index>, record: u64) -> Result<Self::Record>;

    /// Returns the byte ranges needed to read a record from a file in a store.
    fn ranges(&self, file: &File<Self::Index>, record: u64) -> impl IntoIterator<Item = Range<u64>>;

    /// Returns the byte ranges to read next for a record, without waiting for other bytes.
    fn next_ranges(&self, file: &File<Self::Index>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        self.ranges(file, record)
    }

    /// Returns the file of record `index`, and the record's number in the file. `firsts` has the number of records
    /// before each file.
    fn find(&self, firsts: &Firsts, index: u64) -> Result<(usize, u64)> {
        firsts.find(index)
    }

    /// Adds the file and record to an error.
    #[cold]
    fn locate(&self, file: &File<Self::Index>, record: u64, error: Error) -> Error {
        error.path(&file.path).record(record)
    }

    /// Returns the size of a record in its file in bytes, or `None` if the size is unknown without reading.
    fn stored_bytes(&self, _file: &File<Self::Index>, _record: u64) -> Option<u64> {
        None
    }

    /// Describes the position of a record, without reading.
    fn place_in_words(&self, file: &File<Self::Index>, record: u64) -> String {
        format!("record {record} of {}", file.path.as_ref().display())
    }

    /// Returns the options that affect the data, as a suffix for the identity of the files.
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the memory used by an index in bytes, or `None` if it is not counted.
    fn index_bytes(_: &Self::Index) -> Option<u64> {
        None
    }

    /// Returns a remark for the report: see [`RandomAccess::take_note`].
    fn take_note(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// A record with a size, which the report sums.
pub(crate) trait Payload {
    /// Returns the size of the payload in bytes.
    fn bytes(&self) -> u64;
}

impl Payload for Buffer {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl Payload for Element {
    fn bytes(&self) -> u64 {
        self.nbytes() as u64
    }
}

impl Payload for String {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }
}

/// An open file.
pub(crate) struct File<I> {
    pub(super) path: Location,
    pub(super) content: Content,
    pub(super) index: I,
}

impl File<Starts> {
    /// Returns the byte range of a record: up to the next record, or to the end of the file.
    pub(super) fn range(&self, record: u64) -> Option<Range<u64>> {
        let start = self.index.get(record)?;
        Some(start..self.index.get(record + 1).unwrap_or(self.content.len()))
    }
}

/// A file during opening.
pub(crate) struct Opening {
    pub(super) path: Location,
    /// The content to read records from.
    pub(super) content: Content,
    /// Identity of the file.
    pub(super) id: FileId,
}

impl Opening {
    fn open<I>(
        (path, content): (Location, Content),
        index: impl Fn(&mut Self) -> Result<I>,
    ) -> Result<(File<I>, FileId)> {
        let mut opening = Self { id: content.id(&path), path, content };
        let index = index(&mut opening).map_err(|e| e.path(&opening.path))?;
        let Self { path, content, id } = opening;
        Ok((File { path, content, index }, id))
    }
}

/// The files of a format, in order. The public sources are wrappers of this type.
pub(crate) struct Files<F: Numbered> {
    pub(super) format: F,
    pub(super) files: Vec<File<F::Index>>,
    firsts: Firsts,
    /// True if any file is in a store.
    far: bool,
    identity: String,
}

impl<F: Numbered> Files<F> {
    /// Creates a source from indexed files and their identities.
    pub(super) fn of(format: F, files: Vec<File<F::Index>>, ids: &[FileId]) -> Result<Self> {
        let firsts = Firsts::of(files.iter().map(|file| format.len(file)))?;
        let far = content::any_far(files.iter().map(|file| &file.content));
        Ok(Self { format, files, firsts, far, identity: files::identity(ids) })
    }

    /// Opens the files concurrently. `index` builds the index of each file.
    pub(super) fn open(
        format: F,
        contents: Contents,
        index: impl Fn(&F, &mut Opening) -> Result<F::Index> + Sync,
    ) -> Result<Self> {
        let open = |content| Opening::open(content, |opening| index(&format, opening));
        let opened = abreast::try_each(contents, open)?;
        let (files, ids): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
        Self::of(format, files, &ids)
    }

    /// Opens files by the starts of their records, from the cache or by calling `find`.
    pub(super) fn indexed(
        format: F,
        contents: Contents,
        records: Records,
        cache: &IndexCache,
        find: impl Fn(&Content) -> Result<Starts> + Sync,
    ) -> Result<Self>
    where
        F::Index: From<Starts>,
    {
        let (starts, ids) = load_or_find(&contents, records, cache, |at| find(&contents[at].1))?;
        let file = |((path, content), starts): (_, Starts)| File { path, content, index: starts.into() };
        Self::of(format, contents.into_iter().zip(starts).map(file).collect(), &ids)
    }

    /// Returns the file of a record, and the record's number in the file.
    #[inline]
    pub(super) fn find(&self, index: u64) -> Result<(usize, u64)> {
        self.format.find(&self.firsts, index)
    }

    /// Starts to fetch these records concurrently, if they are in files in a store.
    #[inline]
    pub(super) fn fetch(&self, indices: &[u64]) {
        if self.far {
            let ranges = self.ranges(indices, |file, record| self.format.ranges(file, record));
            content::fetch_all(ranges, |at| &self.files[at].content);
        }
    }

    /// Returns the byte ranges needed for these records, each with the index of its file. Skips files that are not in a
    /// store.
    fn ranges<'a, R: IntoIterator<Item = Range<u64>>>(
        &'a self,
        indices: &'a [u64],
        ranges: impl Fn(&'a File<F::Index>, u64) -> R,
    ) -> impl Iterator<Item = (usize, Range<u64>)> {
        let places = indices.iter().filter_map(|&index| self.find(index).ok());
        let far = places.filter(|&(at, _)| self.files[at].content.here().is_none());
        far.flat_map(move |(at, record)| ranges(&self.files[at], record).into_iter().map(move |range| (at, range)))
    }
}

impl<F: Numbered> RandomAccess for Files<F> {
    type Record = F::Record;

    fn len(&self) -> u64 {
        self.firsts.len
    }

    #[inline]
    fn read(&self, index: u64) -> Result<F::Record> {
        let (at, record) = self.find(index)?;
        let file = &self.files[at];
        self.format.read(file, record).map_err(|e| self.format.locate(file, record, e))
    }

    #[inline]
    fn read_many(&self, indices: &[u64]) -> Many<F::Record> {
        self.fetch(indices);
        Many::one_by_one(indices, |index| self.read(index).map(Some))
    }

    fn stored_bytes(&self, index: u64) -> Option<u64> {
        let (at, record) = self.find(index).ok()?;
        self.format.stored_bytes(&self.files[at], record)
    }

    fn stored_range(&self, index: u64) -> Option<Range<u64>> {
        let (at, record) = self.find(index).ok()?;
        let mut ranges = self.format.ranges(&self.files[at], record).into_iter();
        let range = ranges.next().filter(|_| ranges.next().is_none())?;
        // Records that are decoded together have a common range.
        let bytes = self.format.stored_bytes(&self.files[at], record)?;
        (range.end.checked_sub(range.start) == Some(bytes)).then_some(range)
    }

    fn place_in_words(&self, index: u64) -> Option<String> {
        let (at, record) = self.find(index).ok()?;
        Some(self.format.place_in_words(&self.files[at], record))
    }

    fn place(&self, index: u64) -> Option<(PathBuf, u64)> {
        let (at, record) = self.find(index).ok()?;
        Some((self.files[at].path.clone().into_path(), record))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            is_native: true,
            has_columns: F::HAS_COLUMNS,
            reads_together: self.far,
            reads_far: self.far,
            is_mapped: F::IS_VIEW && !self.far,
            memory_bytes: self.files.iter().map(|file| F::index_bytes(&file.index)).sum(),
            ..SourceFacts::new(F::NAME, self.identity.clone() + &self.format.params())
        }
    }

    fn will_read(&self, next: Upcoming<'_>) {
        if !self.far {
            return;
        }
        let ranges = self.ranges(next.indices(), |file, record| self.format.next_ranges(file, record));
        content::will_read(ranges, next, |at| &self.files[at].content);
    }

    fn bring(&self, indices: &[u64]) {
        for &index in indices {
            if let Ok((at, record)) = self.find(index) {
                let file = &self.files[at];
                self.format.ranges(file, record).into_iter().for_each(|range| file.content.bring(range));
            }
        }
    }

    #[inline]
    fn take_note(&self) -> Option<(&'static str, u64)> {
        self.format.take_note()
    }

    fn files(&self) -> Vec<String> {
        files::identities(self.files.iter().map(|file| file.content.id(&file.path)))
    }

    #[inline]
    fn record_bytes(&self, record: &F::Record) -> u64 {
        record.bytes()
    }
}

debug_as!(<F: Numbered> Files<F>, |self, f| write!(f, "{} records, {} files", self.len(), self.files.len()));
