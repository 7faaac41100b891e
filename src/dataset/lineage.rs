//! The records from which delivered rows were made.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::node::{Records, Work, address};
use super::plan::{PlannedBatch, Span};
use super::routes::{NO_ROUTE, Route};
use super::run::upcoming::{Found, Upcoming};
use super::stage::Stage;
use crate::cx::ElementId;

/// The records of a delivered row, as returned by [`Loader::lineage`](crate::Loader::lineage).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lineage {
    /// Number of the row in its global batch.
    pub row: u64,
    /// The parts of the row, in order.
    pub segments: Vec<Segment>,
}

/// A record in a row, or a part of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Segment {
    /// Name of the source: `jsonl`.
    pub source: &'static str,
    /// Stage id of the source.
    pub stage: usize,
    /// Number of the record in the source, from 0, over all files of the source.
    pub index: u64,
    /// File of the record. `None` if the source has no files.
    pub file: Option<PathBuf>,
    /// Number of the record in its file, from 0. Equals `index` if there is no file.
    pub record: u64,
    /// Bytes of the record in its file, if the format has them without reading.
    #[serde(serialize_with = "pair")]
    pub bytes: Option<Range<u64>>,
    /// Number of complete reads of the source before this read.
    pub epoch: u64,
    /// Number of the element among the elements that stages made of the record.
    pub piece: u32,
    /// Cells of the element in the row, in the first packed feature. `None` if rows are not packed: the row is the element.
    #[serde(serialize_with = "pair")]
    pub tokens: Option<Range<u64>>,
    /// Cells of the row that the element fills, in the first packed feature.
    #[serde(serialize_with = "pair")]
    pub cells: Option<Range<u64>>,
}

/// Writes a range as `[start, end]`.
fn pair<S: Serializer>(range: &Option<Range<u64>>, serializer: S) -> Result<S::Ok, S::Error> {
    range.as_ref().map(|range| [range.start, range.end]).serialize(serializer)
}

/// Records of a pipeline: the stage id of a source, and the number of the record in the source.
pub(crate) type RecordSet = HashSet<(usize, u64)>;

/// Finds the records of planned rows of a pipeline. Reads nothing.
pub(crate) struct Tracer<'a> {
    /// The random-access dataset before each border, by the number of the border.
    prefixes: Vec<&'a dyn Stage>,
    sources: Vec<SourceAt<'a>>,
}

/// A source of a pipeline.
pub(super) struct SourceAt<'a> {
    pub(super) stage: usize,
    /// The memory address of the source.
    address: usize,
    pub(super) name: &'static str,
    pub(super) records: &'a dyn Records,
}

impl<'a> SourceAt<'a> {
    /// Returns the source of `stage`, if it is a source with records.
    fn of(id: usize, stage: &'a dyn Stage) -> Option<Self> {
        let node = stage.node();
        node.source.map(|records| Self { stage: id, address: address(records), name: node.name, records })
    }

    /// Returns the sources of `dataset`, whose first stage id is `first`.
    pub(super) fn all(dataset: &'a dyn Stage, first: usize) -> Vec<Self> {
        let mut sources = Vec::new();
        dataset.walk(&mut |id, stage| sources.extend(Self::of(first + id, stage)));
        sources
    }

    /// Returns the numbers in the source of records `wanted` of a file whose path ends in `file`.
    pub(super) fn records_at(&self, file: &Path, wanted: &[u64]) -> Vec<Option<u64>> {
        let (records, mut first, mut found) = (self.records.records().unwrap_or(0), 0, vec![None; wanted.len()]);
        while first < records {
            let Some((path, number)) = self.records.record_place(first) else {
                let is_here = |record: &&u64| file == Path::new(self.name) && **record < records;
                return wanted.iter().map(|record| Some(record).filter(is_here).copied()).collect();
            };
            if path.ends_with(file) {
                for (found, record) in found.iter_mut().zip(wanted).filter(|(found, _)| found.is_none()) {
                    let index = record.checked_sub(number).and_then(|ahead| first.checked_add(ahead));
                    let index = index.filter(|&index| index < records);
                    *found = index.filter(|&index| self.is_at(index, &path, *record));
                }
                if found.iter().all(Option::is_some) {
                    return found;
                }
            }
            // Files follow each other: the next file begins at the first record with another path.
            let (mut here, mut there) = (first, records);
            while there - here > 1 {
                let middle = here + (there - here) / 2;
                let Some((found_path, _)) = self.records.record_place(middle) else { return found };
                if found_path == path { here = middle } else { there = middle }
            }
            first = there;
        }
        found
    }

    fn is_at(&self, index: u64, path: &Path, record: u64) -> bool {
        self.records.record_place(index).is_some_and(|(found, number)| found == path && number == record)
    }
}

impl<'a> Tracer<'a> {
    /// Lists the borders and sources of `stream`.
    pub(crate) fn new(stream: &'a dyn Stage) -> Self {
        let (mut prefixes, mut sources) = (Vec::new(), Vec::new());
        stream.walk(&mut |stage, node| {
            let facts = node.node();
            if facts.work == Work::Border {
                prefixes.extend(node.parents().pop());
            }
            sources.extend(SourceAt::of(stage, node));
        });
        Self { prefixes, sources }
    }

    /// Returns the lineage of the rows of a planned batch.
    pub(crate) fn rows(&self, batch: &PlannedBatch) -> Vec<Lineage> {
        if batch.is_element {
            return batch.rows.recipe(0).iter().flat_map(|member| self.rows_of_element(member.id)).collect();
        }
        (0..batch.rows.len()).map(|row| self.row(batch, row)).collect()
    }

    fn row(&self, batch: &PlannedBatch, row: usize) -> Lineage {
        let spans = batch.spans.get(row).and_then(Option::as_deref).unwrap_or_default();
        let members = batch.rows.recipe(row);
        let segments = members.iter().enumerate().flat_map(|(at, member)| {
            let found = self.found(member.id).into_iter();
            found.filter_map(move |found| self.segment(found, member.id, spans.get(at)))
        });
        Lineage { row: row as u64, segments: segments.collect() }
    }

    /// Returns the lineage of the rows of a planned batch that have one of `records`.
    pub(crate) fn rows_with(&self, batch: &PlannedBatch, records: &RecordSet) -> Vec<Lineage> {
        if batch.is_element {
            return self.rows(batch);
        }
        let mut rows: Vec<usize> =
            self.members(batch, records).into_iter().map(|member| batch.rows.row_of(member)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows.into_iter().map(|row| self.row(batch, row)).collect()
    }

    /// Returns the rows of an element that is delivered alone. A batch of the prefix has several rows.
    fn rows_of_element(&self, id: ElementId) -> Vec<Lineage> {
        let mut rows: Vec<Lineage> = Vec::new();
        for found in self.found(id) {
            let row = u64::from(found.place);
            if rows.last().is_none_or(|last| last.row != row) {
                rows.push(Lineage { row, segments: Vec::new() });
            }
            let segment = self.segment(found, id, None);
            rows.last_mut().into_iter().for_each(|last| last.segments.extend(segment.clone()));
        }
        rows
    }

    /// Returns true if a planned batch has one of `records`.
    pub(crate) fn has(&self, batch: &PlannedBatch, records: &RecordSet) -> bool {
        !self.members(batch, records).is_empty()
    }

    /// Returns the members of a planned batch that have one of `records`.
    fn members(&self, batch: &PlannedBatch, records: &RecordSet) -> Vec<usize> {
        let (ids, mut members) = (batch.rows.ids(), Vec::new());
        for (border, prefix) in (0..).zip(&self.prefixes) {
            let of_border = ids.iter().enumerate().filter(|(_, id)| id.border == border);
            let (places, indices): (Vec<usize>, Vec<u64>) = of_border.map(|(member, id)| (member, id.index)).unzip();
            let found = Upcoming::follow(&indices, |next| prefix.will_read(next));
            let is_one = |found: &&Found| {
                let mut stages = self.sources.iter().filter(|source| source.address == found.source);
                stages.any(|source| records.contains(&(source.stage, found.record)))
            };
            // A batch of the prefix has several records, which have no numbers of their own.
            let member = |found: &Found| places.get(found.place as usize).copied();
            members.extend(found.iter().filter(is_one).filter_map(member));
        }
        members
    }

    /// Returns the number of borders.
    pub(crate) fn borders(&self) -> usize {
        self.prefixes.len()
    }

    /// Returns all indices at which `records` come, as border and index. The indices of each border are below its limit in
    /// `limits`.
    ///
    /// # Errors
    /// The reason if the indices are unknown.
    pub(crate) fn indices(&self, records: &RecordSet, limits: &[u64]) -> Result<Vec<(usize, u64)>, &'static str> {
        let mut indices = Vec::new();
        for ((border, prefix), limit) in self.prefixes.iter().enumerate().zip(limits) {
            let routes = Route::all(*prefix).ok_or(NO_ROUTE)?;
            for source in &self.sources {
                let records = || records.iter().filter(|(stage, _)| *stage == source.stage).map(|(_, record)| *record);
                for route in routes.iter().filter(|route| route.source == source.address) {
                    let mut found = Vec::new();
                    records().try_for_each(|record| route.indices(record, *limit, &mut found)).ok_or(NO_ROUTE)?;
                    indices.extend(found.into_iter().map(|index| (border, index)));
                }
            }
        }
        Ok(indices)
    }

    /// Returns the source, by its stage id, and the number there of record `record` of a file, whose path ends in `file`.
    /// A source without files has its name in place of a path.
    pub(crate) fn record_at(&self, file: &Path, record: u64) -> Option<(usize, u64)> {
        let place = |source: &SourceAt<'_>| Some((source.stage, source.records_at(file, &[record]).pop()??));
        self.sources.iter().find_map(place)
    }

    /// Returns the records of an element, in order.
    fn found(&self, id: ElementId) -> Vec<Found> {
        let Some(prefix) = self.prefixes.get(id.border as usize) else { return Vec::new() };
        let mut found = Upcoming::follow(&[id.index], |next| prefix.will_read(next));
        found.sort_by_key(|found| found.place);
        found
    }

    fn source(&self, found: &Found) -> Option<&SourceAt<'a>> {
        self.sources.iter().find(|source| source.address == found.source)
    }

    fn segment(&self, found: Found, id: ElementId, span: Option<&Span>) -> Option<Segment> {
        let source = self.source(&found)?;
        let (file, record) = source.records.record_place(found.record).unzip();
        Some(Segment {
            source: source.name,
            stage: source.stage,
            index: found.record,
            file,
            record: record.unwrap_or(found.record),
            bytes: source.records.record_range(found.record),
            epoch: found.epoch,
            piece: id.piece,
            tokens: span.map(|span| span.tokens.clone()),
            cells: span.map(|span| span.cells.clone()),
        })
    }
}
