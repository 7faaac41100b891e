use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use super::{BulkRead, Decoded, GetStacked, Many, MapDataset, Shuffled, SourceFacts};
use crate::cx::{Cx, StageId};
use crate::dataset::blocks::Blocks;
use crate::dataset::memory::Memory;
use crate::dataset::node::{Indices, Moves, Node, Reads, Records, address};
use crate::dataset::run::upcoming::{FURTHEST, Record, Upcoming};
use crate::dataset::stage::{Role, Stage};
use crate::element::{Name, Ragged, Stack};
use crate::error::Result;
use crate::store;

/// Records that are read by index: the trait of custom sources.
///
/// Implemented for `Vec<T>` and every file format with random access. `examples/custom_source.rs` is a complete
/// example.
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait RandomAccess: Send + Sync {
    /// Type of the records.
    type Record;

    /// Returns the number of records.
    fn len(&self) -> u64;

    /// Reads record `index`, which is below [`len`](Self::len).
    ///
    /// # Errors
    /// Errors should contain the file and the record.
    fn read(&self, index: u64) -> Result<Self::Record>;

    /// Returns a dataset of the records.
    fn dataset(self) -> Source<Self>
    where
        Self: Sized,
    {
        Source::new(self)
    }

    /// Reads the records at `indices`, in order, like [`read`](Self::read). For sources that read many records faster
    /// at once than one by one.
    fn read_many(&self, indices: &[u64]) -> Many<Self::Record> {
        Many::one_by_one(indices, |index| self.read(index).map(Some))
    }

    /// Returns the batch that [`Stack::stack`] makes of the records at `indices`, copied from columns without making
    /// the records. `indices` is not empty. Returns `None` if there are no columns, or if a record is bad or does not
    /// match the first: see [`BulkRead::get_stacked`].
    fn read_stacked(&self, indices: &[u64]) -> GetStacked<Self::Record>
    where
        Self::Record: Stack,
    {
        None
    }

    /// Returns rows that represent the records at `indices`, without making the records: see
    /// [`BulkRead::get_ragged`]. `indices` is not empty. Called only on [native](SourceFacts::is_native) sources.
    #[doc(hidden)]
    fn read_ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        None
    }

    /// Returns true if there are no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the stored size of record `index` in bytes, if known without reading.
    fn stored_bytes(&self, index: u64) -> Option<u64> {
        None
    }

    /// Returns the bytes of record `index` in its file, if known without reading.
    #[doc(hidden)]
    fn stored_range(&self, index: u64) -> Option<Range<u64>> {
        None
    }

    /// Returns the place of record `index` for messages, such as `news.jsonl:1183`, if known without reading.
    #[doc(hidden)]
    fn place_in_words(&self, index: u64) -> Option<String> {
        self.place(index).map(|(file, record)| format!("record {record} of {}", file.display()))
    }

    /// Returns the file of record `index` and the record's number in that file. For errors about its content.
    fn place(&self, index: u64) -> Option<(PathBuf, u64)> {
        None
    }

    /// Returns the stage name, the identity of the data, and other facts that are constant while the source is open.
    /// [`Source::new`] calls this method once.
    fn facts(&self) -> SourceFacts {
        SourceFacts::new("source", format!("{} records", self.len()))
    }

    /// Returns the number of upcoming records to announce with [`will_read`](Self::will_read): see
    /// [`Moves::looks_ahead`]. `None` means 65,536 for a source that [reads far](SourceFacts::reads_far), and no
    /// announcements for other sources.
    fn looks_ahead(&self) -> Option<u64> {
        None
    }

    /// Announces the next records: see [`Moves::will_read`]. Called only if the source [looks
    /// ahead](Self::looks_ahead).
    fn will_read(&self, next: Upcoming<'_>) {}

    /// Loads the records at `indices` into memory, with as few neighbouring bytes as possible. The caller reads these
    /// records now, and few others, for example in a pass over a [part](crate::part). For mapped files,
    /// which the system would otherwise read ahead.
    #[doc(hidden)]
    fn bring(&self, indices: &[u64]) {}

    /// Returns the counts of decoded units since the last call, for sources that decode many records at once; `None` if
    /// there were none.
    #[doc(hidden)]
    fn take_decoded(&self) -> Option<Decoded> {
        None
    }

    /// Returns a remark for the report, with the number of times it occurred since the last call; `None` if it did not
    /// occur.
    #[doc(hidden)]
    fn take_note(&self) -> Option<(&'static str, u64)> {
        None
    }

    /// Returns the runs of records that are fetched or decoded together: row groups, chunks, shards.
    /// Orders of blocks move each run as a unit. Together, the runs contain all records in order.
    fn blocks(&self) -> Option<Blocks> {
        None
    }

    /// Returns the files that contain the records: see [`Records::files`].
    fn files(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the cost of random order, if that is higher than the cost of reading in order: see
    /// [`Records::if_shuffled`].
    #[doc(hidden)]
    fn if_shuffled(&self) -> Option<Shuffled> {
        None
    }

    /// Returns the payload bytes of a record, for the report.
    fn record_bytes(&self, record: &Self::Record) -> u64 {
        0
    }
}

impl<T: Clone + Send + Sync> RandomAccess for Vec<T> {
    type Record = T;

    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read(&self, index: u64) -> Result<T> {
        Ok(self[index as usize].clone())
    }
}

/// A dataset of the records of any [`RandomAccess`]: Grain's `MapDataset.source`. Index `i` reads record `i % len`.
///
/// ```
/// use gristmill::{dataset::map::Source, prelude::*};
/// assert_eq!(Source::new(vec!["a", "b"]).collect()?, ["a", "b"]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone)]
pub struct Source<S> {
    source: S,
    facts: SourceFacts,
}

impl<S: RandomAccess> Source<S> {
    /// Makes a dataset of the records of `source`.
    pub fn new(source: S) -> Self {
        Self { facts: source.facts(), source }
    }

    /// Returns the source.
    pub fn inner(&self) -> &S {
        &self.source
    }

    /// Returns the records at `indices`. The source must not be empty.
    fn places<'a>(&self, indices: &'a [u64]) -> Cow<'a, [u64]> {
        let len = self.source.len();
        match indices.iter().any(|&index| index >= len) {
            true => indices.iter().map(|index| index % len).collect(),
            false => indices.into(),
        }
    }

    /// Adds the source's counts and remarks to the report.
    #[inline]
    fn tell(&self, cx: &mut Cx) {
        store::tell(cx);
        if let Some(decoded) = self.source.take_decoded() {
            decoded.note(self.facts.name, cx);
        }
        if let Some((what, count)) = self.source.take_note() {
            cx.note(what, count);
        }
    }
}

impl<S: RandomAccess> Stage for Source<S> {
    fn node(&self) -> Node<'_> {
        let &SourceFacts { name, is_native, has_columns, reads_together, reads_far, memory_bytes, .. } = &self.facts;
        Node {
            describe: &self.facts.identity,
            is_native,
            has_columns,
            reads: Reads { together: reads_together, far: reads_far },
            indices: Indices::Moved(self),
            source: Some(self),
            memory: memory_bytes.map(Memory::bytes),
            ..Node::new(name, Role::Source)
        }
    }
    facts! { parents: Vec::new() }
}

impl<S: RandomAccess> Moves for Source<S> {
    fn looks_ahead(&self, _: Option<u64>) -> Option<u64> {
        self.source.looks_ahead().or(self.facts.reads_far.then_some(FURTHEST))
    }
    fn will_read(&self, next: Upcoming<'_>) {
        let told = !next.reaches(self.facts.name, self, self.source.len());
        if !told || self.source.is_empty() {
            return;
        }
        if next.is_apart() {
            self.source.bring(&self.places(next.indices()));
        } else if self.looks_ahead(None).is_some() {
            self.source.will_read(next.at(&self.places(next.indices())));
        }
    }
    fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
        record.index_in(self.facts.name, self.source.len(), epoch)
    }
    fn blocks(&self) -> Option<Blocks> {
        self.source.blocks()
    }
}

impl<S: RandomAccess> Records for Source<S> {
    fn records(&self) -> Option<u64> {
        Some(self.source.len())
    }
    fn record_bytes(&self, record: u64) -> Option<u64> {
        self.source.stored_bytes(record)
    }
    fn record_in_words(&self, record: u64) -> Option<String> {
        self.source.place_in_words(record)
    }
    fn record_place(&self, record: u64) -> Option<(PathBuf, u64)> {
        self.source.place(record)
    }
    fn record_range(&self, record: u64) -> Option<Range<u64>> {
        self.source.stored_range(record)
    }
    fn is_mapped(&self) -> bool {
        self.facts.is_mapped
    }
    fn files(&self) -> Vec<String> {
        self.source.files()
    }
    fn if_shuffled(&self) -> Option<Shuffled> {
        self.source.if_shuffled()
    }
}

impl<S: RandomAccess> MapDataset for Source<S> {
    type Item = S::Record;

    fn len(&self) -> u64 {
        self.source.len()
    }

    #[inline]
    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<S::Record>> {
        let len = self.source.len();
        if len == 0 {
            return Ok(None);
        }
        let index = if index < len { index } else { index % len };
        let record = cx.timed(StageId(0), || self.source.read(index));
        self.tell(cx);
        match record {
            Ok(record) => {
                if cx.is_timing() {
                    cx.sampled_bytes(StageId(0), self.source.record_bytes(&record));
                }
                Ok(Some(record))
            }
            Err(error) => Err(cx.blame(StageId(0), self.facts.name, error)),
        }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<S::Record> {
        let len = self.source.len();
        if len == 0 {
            return Many::one_by_one(indices, |_| Ok(None));
        }
        let places = self.places(indices);
        let many = cx.timed_many(StageId(0), places.len(), || self.source.read_many(&places));
        self.tell(cx);
        if cx.is_timing() {
            let bytes = many.items().iter().map(|record| self.source.record_bytes(record)).sum();
            cx.sampled_bytes(StageId(0), bytes);
        }
        let blame = cx.blamer(StageId(0), self.facts.name);
        many.map_errors(|_, error| blame(error))
    }

    reads_in_bulk!();
}

impl<S: RandomAccess> BulkRead<S::Record> for Source<S> {
    fn get_ragged(&self, indices: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        if self.source.is_empty() {
            return None;
        }
        let places = self.places(indices);
        let rows = cx.consumed_many(StageId(0), places.len(), || self.source.read_ragged(&places, names));
        self.tell(cx);
        let rows = rows.filter(|rows| rows.len() == indices.len() && rows.columns().len() == names.len())?;
        cx.produced(StageId(0), places.len() as u64, 0);
        if cx.is_timing() {
            cx.sampled_bytes(StageId(0), rows.nbytes() as u64);
        }
        Some(rows)
    }

    fn get_ragged_records(&self, source: usize, records: &[u64], names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        if source == address(self) { self.get_ragged(records, names, cx) } else { None }
    }

    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<S::Record>> {
        (source == address(self)).then(|| self.get_many(records, cx))
    }

    fn get_stacked(&self, indices: &[u64], cx: &mut Cx) -> GetStacked<S::Record>
    where
        S::Record: Stack,
    {
        if self.source.is_empty() {
            return None;
        }
        let places = self.places(indices);
        let batch = cx.timed_many(StageId(0), places.len(), || self.source.read_stacked(&places));
        self.tell(cx);
        if let Some(batch) = batch.as_ref().filter(|_| cx.is_timing()) {
            cx.sampled_bytes(StageId(0), batch.bytes as u64);
        }
        batch
    }
}

debug_as!(<S> Source<S>, |self, f| f.debug_struct("Source").finish_non_exhaustive());
