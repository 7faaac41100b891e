//! Rows that are decoded in groups (spans), and read row by row or as batches.

use std::path::Path;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::FieldRef;
use arrow_select::take::take;

use super::column::Column;
use super::columns::Columns;
use super::ragged::{self, RaggedMut};
use super::value::Memory;
use crate::dataset::iter::InPlace;
use crate::dataset::map::{GetStacked, Many};
use crate::element::{BatchMut, Element, Name, Ragged, Run};
use crate::error::{Error, Result};
use crate::source::contained::contained;
use crate::source::units::{Held, Key, Unit};

/// Implements the part of `RandomAccess` that does not depend on files, for sources whose records are rows of
/// [`Spans`].
macro_rules! rows_of_spans {
    () => {
        type Record = $crate::element::Element;

        fn len(&self) -> u64 {
            self.firsts.len
        }

        fn read(&self, index: u64) -> $crate::error::Result<$crate::element::Element> {
            self.row(index, &mut None)
        }

        fn read_many(&self, indices: &[u64]) -> $crate::element::Many<$crate::element::Element> {
            self.rows(indices)
        }

        fn read_stacked(&self, indices: &[u64]) -> $crate::dataset::map::GetStacked<$crate::element::Element> {
            self.stacked(indices)
        }

        fn read_ragged(&self, indices: &[u64], names: &[$crate::element::Name]) -> Option<$crate::element::Ragged> {
            self.ragged(indices, names)
        }

        fn record_bytes(&self, record: &$crate::element::Element) -> u64 {
            record.nbytes() as u64
        }
    };
}
pub(crate) use rows_of_spans;

/// Decoded rows, with the requested columns.
pub(crate) struct Span {
    columns: Vec<Column>,
    /// Arrays from which the columns were prepared.
    arrays: Vec<(FieldRef, ArrayRef)>,
    rows: usize,
    bytes: usize,
    memory: Memory,
}

impl Span {
    /// Takes the columns at `places` from a batch. They occupy `bytes` of memory.
    pub(crate) fn at(batch: &RecordBatch, places: &[usize], memory: Memory, bytes: usize) -> Self {
        let fields = batch.schema_ref().fields();
        let arrays = places.iter().map(|&at| (fields[at].clone(), batch.column(at).clone())).collect();
        Self::of(arrays, batch.num_rows(), memory, bytes)
    }

    /// Takes the rows of a batch of file `file`, with the common columns of all files. They occupy `bytes` of memory.
    ///
    /// # Errors
    /// As for [`Columns::fit`].
    pub(crate) fn new(
        batch: &RecordBatch,
        file: usize,
        columns: &Columns,
        memory: Memory,
        bytes: usize,
    ) -> Result<Self> {
        Ok(Self::of(columns.fit(file, batch)?, batch.num_rows(), memory, bytes))
    }

    fn of(arrays: Vec<(FieldRef, ArrayRef)>, rows: usize, memory: Memory, bytes: usize) -> Self {
        let columns = arrays.iter().map(|(field, array)| Column::of(field, array)).collect();
        Self { columns, arrays, rows, bytes, memory }
    }

    fn row(&self, names: &[Name], row: usize) -> Result<Element> {
        let mut values = Vec::with_capacity(names.len());
        for (name, column) in names.iter().zip(&self.columns) {
            values.push((name.clone(), column.value(row, self.memory)?));
        }
        Ok(Element::from_unique(values))
    }

    /// Writes `runs` of rows to elements that already have the fields. Works column by column, to match on a column's
    /// type once for many values.
    fn fill(&self, runs: &[Run], elements: &mut [Element]) -> Result<()> {
        /// Rows per step: few enough to stay in the L1 cache until the last column is written.
        const FEW: usize = 32;
        let rows: Vec<(usize, usize)> = Run::rows(runs).collect();
        for few in rows.chunks(FEW) {
            for (at, column) in self.columns.iter().enumerate() {
                column.put_each(at, few, self.memory, elements)?;
            }
        }
        Ok(())
    }

    /// Places `runs` of rows of the columns at `places`. Returns `None` if another column may fail, because only an
    /// element can report that error.
    fn place_runs(&self, runs: &[Run], places: &[usize], columns: &mut [RaggedMut]) -> Option<()> {
        let is_left = |(at, column): (usize, &Column)| !places.contains(&at) && column.may_fail();
        if self.columns.iter().enumerate().any(is_left) {
            return None;
        }
        let mut pairs = places.iter().zip(columns);
        pairs.try_for_each(|(&at, column)| column.place_runs(self.columns.get(at)?, runs, self.memory))
    }

    fn copy_runs(&self, runs: &[Run], batch: &mut BatchMut) -> Result<Option<()>> {
        for (column, (_, out)) in self.columns.iter().zip(batch.columns_mut()) {
            if column.copy_runs(runs, self.memory, out)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}

impl Unit for Span {
    fn memory(&self) -> usize {
        self.bytes
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn only(&self, rows: &[u32]) -> Option<Self> {
        // A view of a file occupies no memory.
        if self.memory == Memory::Viewed {
            return None;
        }
        let places = UInt32Array::from(rows.to_vec());
        let one = |(field, array): &(FieldRef, ArrayRef)| Some((field.clone(), take(array, &places, None).ok()?));
        let arrays: Vec<_> = contained(|| Ok(self.arrays.iter().map(one).collect::<Option<_>>())).ok()??;
        let bytes = arrays.iter().map(|(_, array)| array.get_array_memory_size()).sum();
        Some(Self::of(arrays, rows.len(), self.memory, bytes))
    }
}

/// Place of a row: its span, its index there, and the number of rows from it to the end of the span.
pub(crate) struct Place {
    pub(crate) key: Key,
    pub(crate) row: usize,
    pub(crate) left: usize,
}

/// The span that was read last, which usually contains the next row too.
type Latest = Option<(Key, Held<Span>)>;

/// Source whose rows are decoded in spans.
pub(crate) trait Spans {
    /// Returns the names of the columns, which are unique.
    fn names(&self) -> &[Name];

    /// Returns the place of a row.
    fn find(&self, row: u64) -> Result<Place>;

    /// Returns a decoded span, with all of its rows or at least these rows.
    fn span(&self, key: Key, rows: &[Run]) -> Result<Held<Span>>;

    /// Notes a read of these rows from a span that was returned before: the cache need not keep them for this read.
    fn note(&self, key: Key, rows: &mut dyn Iterator<Item = usize>);

    /// Returns the file of a span, if it has a file.
    fn path(&self, key: Key) -> Option<&Path>;

    /// Returns a span with these rows, reusing `latest` if it has them. Drops `latest` before decoding another span.
    fn at_hand<'a>(&self, key: Key, rows: &[Run], latest: &'a mut Latest) -> Result<&'a Held<Span>> {
        let has_all = |held: &Held<Span>| held.is_whole() || each_row(rows).all(|row| held.place(row).is_some());
        let span = if let Some((_, span)) = latest.take().filter(|(known, held)| *known == key && has_all(held)) {
            self.note(key, &mut each_row(rows));
            span
        } else {
            self.span(key, rows)?
        };
        Ok(&latest.insert((key, span)).1)
    }

    /// Returns a row, from the latest span if possible.
    fn row(&self, index: u64, latest: &mut Latest) -> Result<Element> {
        let Place { key, row, .. } = self.find(index)?;
        let wanted = [Run { from: row, to: 0, len: 1 }];
        let held = self.at_hand(key, &wanted, latest).map_err(|e| e.record(index))?;
        let row = held.place(row).ok_or_else(|| Error::data("is not in its span").record(index))?;
        contained(|| held.unit.row(self.names(), row)).map_err(|e| {
            let error = self.path(key).into_iter().fold(e, Error::path);
            error.record(index)
        })
    }

    /// Returns what [`row`](Self::row) would return for each index.
    fn rows(&self, indices: &[u64]) -> Many<Element> {
        let mut elements: Vec<Element> = indices.iter().map(|_| Element::nulls(self.names())).collect();
        let mut latest = None;
        match self.each_span(indices, |span, runs| span.fill(runs, &mut elements).map(Some)) {
            Some(()) => elements.into(),
            // Read one by one, each row returns its own error.
            None => Many::one_by_one(indices, |index| self.row(index, &mut latest).map(Some)),
        }
    }

    /// Copies these rows, at least one, from their columns into a batch: see
    /// [`RandomAccess::read_stacked`](crate::dataset::map::RandomAccess::read_stacked).
    fn stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        let mut begun = None;
        self.each_span(indices, |span, runs| {
            let batch = match &mut begun {
                Some(batch) => batch,
                None => begun.insert(BatchMut::like(&span.row(self.names(), runs[0].from)?, indices.len())?),
            };
            span.copy_runs(runs, batch)
        })?;
        let batch = begun?.finish();
        Some(InPlace { len: indices.len(), bytes: batch.nbytes(), batch })
    }

    /// Returns these rows, at least one, without making elements: see
    /// [`RandomAccess::read_ragged`](crate::dataset::map::RandomAccess::read_ragged).
    fn ragged(&self, indices: &[u64], names: &[Name]) -> Option<Ragged> {
        let place = |name: &Name| self.names().iter().position(|other| other == name);
        let places: Vec<usize> = names.iter().map(place).collect::<Option<_>>()?;
        let mut columns: Vec<_> = names.iter().map(|_| RaggedMut::new(indices.len())).collect();
        self.each_span(indices, |span, runs| Ok(span.place_runs(runs, &places, &mut columns)))?;
        ragged::finish(indices.len(), columns)
    }

    /// Calls `take` for each span with the runs of its rows. The first call is for the span of the first index, whose
    /// run comes first; other spans follow in any order. Each span is looked up once, and dropped before another is
    /// decoded. Returns `None` on the first failure, or if `take` returns `None`.
    fn each_span(&self, indices: &[u64], mut take: impl FnMut(&Span, &[Run]) -> Result<Option<()>>) -> Option<()> {
        let mut pieces = self.pieces(indices).ok()?;
        let first = pieces.first().map(|(key, _)| *key);
        let order = |&(key, _): &(Key, Run)| (Some(key) < first, key);
        if !pieces.is_sorted_by_key(order) {
            pieces.sort_by_key(order);
        }
        let mut runs = Vec::new();
        for pieces in pieces.chunk_by(|a, b| a.0 == b.0) {
            runs.clear();
            runs.extend(pieces.iter().map(|(_, run)| *run));
            let held = self.span(pieces[0].0, &runs).ok()?;
            if !held.is_whole() {
                let run = |(from, to)| Some(Run { from: held.place(from)?, to, len: 1 });
                runs = Run::rows(&runs).map(run).collect::<Option<_>>()?;
            }
            contained(|| take(&held.unit, &runs)).ok()??;
        }
        Some(())
    }

    /// Splits indices into runs of consecutive rows in a span, and returns each run with its span.
    fn pieces(&self, indices: &[u64]) -> Result<Vec<(Key, Run)>> {
        let (mut pieces, mut to) = (Vec::new(), 0);
        while let Some(&index) = indices.get(to) {
            let Place { key, row: from, left } = self.find(index)?;
            let behind = indices[to..].iter().zip(index..).take(left);
            let len = behind.take_while(|(index, next)| **index == *next).count().max(1);
            pieces.push((key, Run { from, to, len }));
            to += len;
        }
        Ok(pieces)
    }
}

/// Returns the rows of all `runs`.
pub(crate) fn each_row(runs: &[Run]) -> impl Iterator<Item = usize> + Clone {
    runs.iter().flat_map(|run| run.from..run.from + run.len)
}
