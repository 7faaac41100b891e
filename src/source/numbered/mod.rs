//! Files whose records are read by number, one behind the other: what the sources of all formats share.
#![cfg_attr(not(feature = "formats"), allow(dead_code, reason = "what all formats share, no one format needs whole"))]

#[cfg(any(feature = "array_record", feature = "mds"))]
mod grouped;
mod named;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

#[cfg(any(feature = "array_record", feature = "mds"))]
pub(super) use self::grouped::{Grouped, GroupedFiles};
pub(super) use self::named::{named_source, same_source, source_options};
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

/// A format whose records are read by number. Its value is the options of reading, which all files share.
pub(crate) trait Numbered: Sized + Send + Sync {
    /// The type that a record becomes.
    type Record: Payload;
    /// Knowledge of a file besides its bytes, as the places of its records.
    type Index: Send + Sync;

    /// The name of the source.
    const NAME: &'static str;
    /// Whether the source makes batches out of columns: see [`SourceFacts::has_columns`].
    const HAS_COLUMNS: bool = false;

    /// Whether records of files that are mapped are views of them.
    const IS_VIEW: bool = false;

    /// Counts the records of a file.
    fn len(&self, file: &File<Self::Index>) -> u64;

    /// Reads a record of a file.
    fn read(&self, file: &File<Self::Index>, record: u64) -> Result<Self::Record>;

    /// Finds the bytes that reading a record takes of a file that lies far away.
    fn ranges(&self, file: &File<Self::Index>, record: u64) -> impl IntoIterator<Item = Range<u64>>;

    /// Finds the bytes that will be read next for a record, without a wait for any others.
    fn next_ranges(&self, file: &File<Self::Index>, record: u64) -> impl IntoIterator<Item = Range<u64>> {
        self.ranges(file, record)
    }

    /// Finds the file of a record, of so many as `firsts` counts, and the number of the record there.
    fn find(&self, firsts: &Firsts, index: u64) -> Result<(usize, u64)> {
        firsts.find(index)
    }

    /// Adds to an error where it happened.
    #[cold]
    fn locate(&self, file: &File<Self::Index>, record: u64, error: Error) -> Error {
        error.path(&file.path).record(record)
    }

    /// Bytes that a record takes up in its file, where that is known without reading.
    fn stored_bytes(&self, file: &File<Self::Index>, record: u64) -> Option<u64> {
        let _ = (file, record);
        None
    }

    /// Says where a record is, without reading.
    fn place_in_words(&self, file: &File<Self::Index>, record: u64) -> String {
        format!("record {record} of {}", file.path.as_ref().display())
    }

    /// Names the options that shape the data, to follow the identity of the files.
    fn params(&self) -> String {
        String::new()
    }

    /// Bytes that an index holds in memory, where that is counted.
    fn index_bytes(_: &Self::Index) -> Option<u64> {
        None
    }

    /// A remark that the report counts: see [`RandomAccess::take_note`].
    fn take_note(&self) -> Option<(&'static str, u64)> {
        None
    }
}

/// A record whose bytes the report counts.
pub(crate) trait Payload {
    /// Payload bytes of it.
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

/// A file that is open.
pub(crate) struct File<I> {
    pub(super) path: Location,
    pub(super) content: Content,
    pub(super) index: I,
}

impl File<Starts> {
    /// Finds the bytes of a record: to the next one, or to the end.
    pub(super) fn range(&self, record: u64) -> Option<Range<u64>> {
        let start = self.index.get(record)?;
        Some(start..self.index.get(record + 1).unwrap_or(self.content.len()))
    }
}

/// A file that is being opened.
pub(crate) struct Opening {
    pub(super) path: Location,
    /// The bytes that records will be read of.
    pub(super) content: Content,
    /// Its part in the identity of the source.
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

/// Files of a format, in their order: what is behind the public name of a source.
pub(crate) struct Files<F: Numbered> {
    pub(super) format: F,
    files: Vec<File<F::Index>>,
    firsts: Firsts,
    /// Whether some files lie far away.
    far: bool,
    identity: String,
}

impl<F: Numbered> Files<F> {
    /// Files with their indices, and what tells them from others.
    pub(super) fn of(format: F, files: Vec<File<F::Index>>, ids: &[FileId]) -> Result<Self> {
        let firsts = Firsts::of(files.iter().map(|file| format.len(file)))?;
        let far = content::any_far(files.iter().map(|file| &file.content));
        Ok(Self { format, files, firsts, far, identity: files::identity(ids) })
    }

    /// Opens each file by `index`, many at a time.
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

    /// Takes from the cache where records start, or looks for them by `find`.
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

    /// The files, in their order.
    pub(super) fn files(&self) -> &[File<F::Index>] {
        &self.files
    }

    /// Finds the file of a record, and its number there.
    #[inline]
    pub(super) fn find(&self, index: u64) -> Result<(usize, u64)> {
        self.format.find(&self.firsts, index)
    }

    /// Begins to fetch these records, where they lie far away: all at once, not one after the other.
    #[inline]
    pub(super) fn fetch(&self, indices: &[u64]) {
        if self.far {
            let ranges = self.ranges(indices, |file, record| self.format.ranges(file, record));
            content::fetch_all(ranges, |at| &self.files[at].content);
        }
    }

    /// Returns the bytes that are read for these records, file by file, of the files that lie far away.
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
        self.firsts.len()
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

impl<F: Numbered> fmt::Debug for Files<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, {} files", self.len(), self.files.len())
    }
}
