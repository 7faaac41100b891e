//! Rows that are decoded many at a time: one by one, and in batches.

use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::cache::Key;
use super::column::Column;
use super::value::Memory;
use crate::dataset::iter::InPlace;
use crate::dataset::map::{GetStacked, Many};
use crate::element::{BatchMut, Element, Name, Run};
use crate::error::{Error, Result};
use crate::source::contained::contained;

/// Decoded rows: the columns asked for.
pub(crate) struct Span {
    columns: Vec<Column>,
    memory: Memory,
}

impl Span {
    /// The columns of a batch that are at `places`.
    pub(crate) fn new(batch: &RecordBatch, places: impl Iterator<Item = usize>, memory: Memory) -> Self {
        let fields = batch.schema_ref().fields();
        Self { columns: places.map(|at| Column::of(&fields[at], batch.column(at))).collect(), memory }
    }

    fn row(&self, names: &[Name], row: usize) -> Result<Element> {
        let mut values = Vec::with_capacity(names.len());
        for (name, column) in names.iter().zip(&self.columns) {
            values.push((name.clone(), column.value(row, self.memory)?));
        }
        Ok(Element::from_unique(values))
    }

    /// Writes `runs` of rows to elements that have the fields, column by column: what a column is decides once for many of its
    /// values how they are made.
    fn fill(&self, runs: &[Run], elements: &mut [Element]) -> Result<()> {
        /// So few that they stay in the nearest cache until the last column is there.
        const FEW: usize = 32;
        let rows: Vec<(usize, usize)> = Run::rows(runs).collect();
        for few in rows.chunks(FEW) {
            for (at, column) in self.columns.iter().enumerate() {
                column.put_each(at, few, self.memory, elements)?;
            }
        }
        Ok(())
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

/// Where a row lies: its span, its number there, and the rows from it on to the end of the span.
pub(crate) struct Place {
    pub(crate) key: Key,
    pub(crate) row: usize,
    pub(crate) left: usize,
}

/// The span that was read last: the next row is in it, too, as a rule.
type Latest = Option<(Key, Arc<Span>)>;

/// A source whose rows lie in spans.
pub(crate) trait Spans {
    /// Names of the columns, which are unique.
    fn names(&self) -> &[Name];

    /// Where a row lies.
    fn find(&self, row: u64) -> Result<Place>;

    /// A span, decoded.
    fn span(&self, key: Key) -> Result<Arc<Span>>;

    /// The file of a span, if it is in one.
    fn path(&self, key: Key) -> Option<&Path>;

    /// A span: the latest one, if it is that. No other is held while it is decoded.
    fn at_hand<'a>(&self, key: Key, latest: &'a mut Latest) -> Result<&'a Span> {
        let known = latest.take().filter(|(known, _)| *known == key);
        let span = known.map_or_else(|| self.span(key), |(_, span)| Ok(span))?;
        Ok(&latest.insert((key, span)).1)
    }

    /// A row, out of the span that was read before if it is there.
    fn row(&self, index: u64, latest: &mut Latest) -> Result<Element> {
        let Place { key, row, .. } = self.find(index)?;
        let span = self.at_hand(key, latest).map_err(|e| e.record(index))?;
        contained(|| span.row(self.names(), row)).map_err(|e| {
            let error = self.path(key).into_iter().fold(e, Error::path);
            error.record(index)
        })
    }

    /// What [`row`](Self::row) gives for each.
    fn rows(&self, indices: &[u64]) -> Many<Element> {
        let mut elements: Vec<Element> = indices.iter().map(|_| Element::nulls(self.names())).collect();
        let mut latest = None;
        match self.each_span(indices, None, |span, runs| span.fill(runs, &mut elements).map(Some)) {
            Some(()) => elements.into(),
            // Each says itself what is wrong with it.
            None => Many::one_by_one(indices, |index| self.row(index, &mut latest).map(Some)),
        }
    }

    /// The batch of these rows, at least one, copied out of their columns: see
    /// [`RandomAccess::read_stacked`](crate::dataset::map::RandomAccess::read_stacked).
    fn stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        let mut latest = None;
        let mut batch = BatchMut::like(&self.row(*indices.first()?, &mut latest).ok()?, indices.len()).ok()?;
        self.each_span(indices, latest, |span, runs| span.copy_runs(runs, &mut batch))?;
        let batch = batch.finish();
        Some(InPlace { len: indices.len(), bytes: batch.nbytes(), batch })
    }

    /// Gives `take` every span with the runs of its rows, in whatever order they are asked for: each is looked up once, the latest
    /// first, and none is held while another is decoded. `None` once something is wrong, or `take` says so.
    fn each_span(
        &self,
        indices: &[u64],
        mut latest: Latest,
        mut take: impl FnMut(&Span, &[Run]) -> Result<Option<()>>,
    ) -> Option<()> {
        let mut pieces = self.pieces(indices).ok()?;
        let first = latest.as_ref().map(|(key, _)| *key);
        let order = |&(key, _): &(Key, Run)| (Some(key) < first, key);
        if !pieces.is_sorted_by_key(order) {
            pieces.sort_by_key(order);
        }
        let mut runs = Vec::new();
        for pieces in pieces.chunk_by(|a, b| a.0 == b.0) {
            let span = self.at_hand(pieces[0].0, &mut latest).ok()?;
            runs.clear();
            runs.extend(pieces.iter().map(|(_, run)| *run));
            contained(|| take(span, &runs)).ok()??;
        }
        Some(())
    }

    /// Rows that lie one behind the other, and are asked for so, and the span of each run of them.
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
