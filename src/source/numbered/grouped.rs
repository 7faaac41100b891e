//! Files with records that are decoded in groups.

use std::path::PathBuf;

use super::{File, Files, Numbered};
use crate::dataset::map::{Decoded, Many, RandomAccess, Shuffled, SourceFacts};
use crate::dataset::{Blocks, Upcoming};
use crate::error::Result;
use crate::source::units::{Key, Unit, Units};

/// A format that decodes several records together: chunks or compressed shards.
pub(crate) trait Grouped: Numbered {
    /// A group of records decoded together.
    type Unit: Unit;

    /// True if files have [blocks](RandomAccess::blocks) even if each record is decoded separately.
    const ALWAYS_IN_BLOCKS: bool = false;

    /// Returns true if records of a file are decoded in groups.
    fn is_grouped(&self, file: &File<Self::Index>) -> bool;

    /// Returns the decoded size of all units of a file, in bytes.
    fn decoded_bytes(&self, file: &File<Self::Index>) -> u64;

    /// Returns the number of records in each unit of a file, in order.
    fn units(&self, file: &File<Self::Index>) -> impl Iterator<Item = u64>;

    /// Returns the unit of a record in its file, and the record's place in the unit. Returns `None` if records are read
    /// separately, with [`read`](Numbered::read).
    fn unit(&self, file: &File<Self::Index>, record: u64) -> Option<(u64, usize)>;

    /// Decodes the unit of a record.
    fn decode(&self, file: &File<Self::Index>, record: u64) -> Result<Self::Unit>;

    /// Reads the record at `place` in the cached form of its unit.
    fn take(&self, file: &File<Self::Index>, unit: &Self::Unit, place: usize, record: u64) -> Result<Self::Record>;

    /// Prefetches the mapped memory of records that are read separately.
    fn approach(_files: &Files<Self>, _indices: &[u64]) {}
}

/// Files of a [`Grouped`] format, with a cache of decoded units.
pub(crate) struct GroupedFiles<F: Grouped> {
    files: Files<F>,
    units: Units<F::Unit>,
    /// True if any file is decoded in groups.
    is_grouped: bool,
    /// Decoded size of the grouped files in bytes.
    decoded: u64,
}

impl<F: Grouped> GroupedFiles<F> {
    /// Creates a source that caches up to `cache_bytes` of decoded units.
    pub(crate) fn new(files: Files<F>, cache_bytes: usize) -> Self {
        let grouped = || files.files.iter().filter(|file| files.format.is_grouped(file));
        let decoded = grouped().map(|file| files.format.decoded_bytes(file)).fold(0, u64::saturating_add);
        let (is_grouped, units) = (grouped().next().is_some(), Units::new(cache_bytes, files.len(), decoded));
        Self { files, units, is_grouped, decoded }
    }

    /// Returns the files in order.
    pub(crate) fn files(&self) -> &[File<F::Index>] {
        &self.files.files
    }

    /// Returns the format and its options.
    pub(crate) fn format(&self) -> &F {
        &self.files.format
    }

    /// Returns the unit of a record and the record's place there. Returns `None` if the record is read separately or
    /// does not exist.
    #[inline]
    fn unit(&self, index: u64) -> Option<(Key, usize)> {
        let (at, record) = self.files.find(index).ok()?;
        let (unit, place) = self.files.format.unit(&self.files()[at], record)?;
        Some(((at, unit), place))
    }

    /// Calls `read` with the file's position, the format, the file and the record's number in the file.
    #[inline]
    fn of_record<T>(&self, index: u64, read: impl FnOnce(usize, &F, &File<F::Index>, u64) -> Result<T>) -> Result<T> {
        let (at, record) = self.files.find(index)?;
        let (format, file) = (&self.files.format, &self.files()[at]);
        read(at, format, file, record).map_err(|e| format.locate(file, record, e))
    }

    fn decode(&self, index: u64) -> Result<F::Unit> {
        self.of_record(index, |_, format, file, record| format.decode(file, record))
    }

    #[inline]
    fn take(&self, unit: &F::Unit, place: usize, index: u64) -> Result<F::Record> {
        self.of_record(index, |_, format, file, record| format.take(file, unit, place, record))
    }
}

impl<F: Grouped> RandomAccess for GroupedFiles<F> {
    type Record = F::Record;

    fn len(&self) -> u64 {
        self.files.len()
    }

    #[inline]
    fn read(&self, index: u64) -> Result<F::Record> {
        if !self.is_grouped {
            return self.files.read(index);
        }
        // Looks up the file and record only once.
        self.of_record(index, |at, format, file, record| match format.unit(file, record) {
            Some((unit, place)) => {
                let take = |unit: &_, place, _| format.take(file, unit, place, record);
                self.units.read_one(index, ((at, unit), place), || format.decode(file, record), take)
            }
            None => format.read(file, record),
        })
    }

    /// Reads the records grouped by file and unit, so that each unit is decoded once.
    #[inline]
    fn read_many(&self, indices: &[u64]) -> Many<F::Record> {
        self.files.fetch(indices);
        if !self.is_grouped {
            F::approach(&self.files, indices);
            return Many::one_by_one(indices, |index| self.files.read(index).map(Some));
        }
        let read = |unit: &_, place, index| self.take(unit, place, index);
        let one = |index| self.read(index);
        self.units.read_many(indices, |index| self.unit(index), |index| self.decode(index), read, one)
    }

    fn place(&self, index: u64) -> Option<(PathBuf, u64)> {
        self.files.place(index)
    }

    fn files(&self) -> Vec<String> {
        RandomAccess::files(&self.files)
    }

    fn facts(&self) -> SourceFacts {
        let facts = self.files.facts();
        let kept = self.decoded.min(self.units.budget as u64);
        SourceFacts {
            reads_together: self.is_grouped || facts.reads_far,
            memory_bytes: Some(kept.saturating_add(facts.memory_bytes.unwrap_or(0))),
            ..facts
        }
    }

    fn looks_ahead(&self) -> Option<u64> {
        (self.is_grouped || self.files.far).then(|| self.units.looks_ahead(self.files.far))
    }

    fn will_read(&self, next: Upcoming<'_>) {
        self.units.tell(next, |index| self.unit(index));
        self.files.will_read(next);
    }

    fn bring(&self, indices: &[u64]) {
        self.files.bring(indices);
    }

    #[inline]
    fn take_decoded(&self) -> Option<Decoded> {
        self.units.take_decoded()
    }

    fn blocks(&self) -> Option<Blocks> {
        let units = self.files().iter().flat_map(|file| self.files.format.units(file));
        if F::ALWAYS_IN_BLOCKS || self.is_grouped { self.units.blocks(units) } else { None }
    }

    fn if_shuffled(&self) -> Option<Shuffled> {
        let units = self.files().iter().map(|file| self.files.format.units(file).count() as u64);
        self.units.if_shuffled(units.sum())
    }

    #[inline]
    fn record_bytes(&self, record: &F::Record) -> u64 {
        self.files.record_bytes(record)
    }
}

debug_as!(<F: Grouped> GroupedFiles<F>, |self, f| self.files.fmt(f));
