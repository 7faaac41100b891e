//! Sources whose records are examples.

use std::fmt;

use super::ExampleParser;
use crate::dataset::map::{Many, RandomAccess, SourceFacts};
use crate::element::{Buffer, Element};
use crate::error::{Error, Result};
use crate::source::numbered::same_source;

/// Source of elements, parsed from the records of a source of bytes: see [`ExampleParser`].
///
/// `Examples` is a [`RandomAccess`] source over `TfRecord` or `ArrayRecord`, and an
/// [`IterDataset`](crate::dataset::IterDataset) over `TfRecordStream`. Errors name the file and the record in the file.
#[must_use = "sources do nothing until read"]
#[derive(Clone)]
pub struct Examples<S> {
    pub(in crate::source) records: S,
    pub(in crate::source) parser: ExampleParser,
}

impl<S> Examples<S> {
    /// Creates a source that parses `records` by `parser`.
    pub fn new(records: S, parser: ExampleParser) -> Self {
        Self { records, parser }
    }
}

impl<S: RandomAccess<Record = Buffer>> Examples<S> {
    fn parse(&self, index: u64, record: &Buffer) -> Result<Element> {
        self.parser.parse(record).map_err(|e| self.located(index, e))
    }

    #[cold]
    fn located(&self, index: u64, error: Error) -> Error {
        match self.records.place(index) {
            Some((path, record)) => error.path(path).record(record),
            None => error.record(index),
        }
    }
}

impl<S: RandomAccess<Record = Buffer>> RandomAccess for Examples<S> {
    type Record = Element;

    same_source!(records);

    fn read(&self, index: u64) -> Result<Element> {
        self.parse(index, &self.records.read(index)?)
    }

    fn read_many(&self, indices: &[u64]) -> Many<Element> {
        let records = self.records.read_many(indices);
        records.filter_map(|place, record| self.parse(indices[place], &record).map(Some))
    }

    fn facts(&self) -> SourceFacts {
        let facts = self.records.facts();
        SourceFacts { identity: format!("{}, {}", facts.identity, self.parser), has_columns: false, ..facts }
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }
}

debug_as!(<S: fmt::Debug> Examples<S>, |self, f| write!(f, "Examples({:?}, {})", self.records, self.parser));
