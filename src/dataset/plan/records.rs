//! Records of a source, evaluated for their keys.

use std::ops::Range;
use std::sync::Arc;

use super::measure::{Measure, bad, texts};
use super::prefix_keys::SourceOf;
use crate::cx::Cx;
use crate::dataset::bring;
use crate::dataset::map::MapDataset;
use crate::dataset::records::source_at;
use crate::dataset::run::evaluate::caught;
use crate::element::{Name, Ragged};
use crate::error::{Error, Result};
use crate::keys::{Key, Keyed};

/// Number of records evaluated together.
const TOGETHER: u64 = 64;

/// The records of a source of the prefix `D`.
pub(super) struct RecordsOf<D: MapDataset> {
    prefix: Arc<D>,
    source: SourceOf,
    /// The columns of the keys.
    columns: Vec<String>,
    /// The arrays whose lengths are requested, as names and as texts.
    arrays: Vec<Name>,
    texts: Vec<String>,
    measure: Measure<D::Item>,
}

impl<D: MapDataset> RecordsOf<D> {
    pub(super) fn new(prefix: Arc<D>, source: SourceOf, names: &[Name], measure: Measure<D::Item>) -> Self {
        let texts = texts(names);
        Self { prefix, source, columns: measure.columns(&texts), arrays: names.to_vec(), texts, measure }
    }
}

impl<D: MapDataset> RecordsOf<D> {
    /// Returns records as rows, whose lengths are available without making elements. Returns `None` if the source has
    /// no such rows.
    fn rows(&self, records: &[u64]) -> Result<Option<Ragged>> {
        if self.texts.is_empty() || !self.source.is_alone() {
            return Ok(None);
        }
        let (address, names) = (self.source.address, &self.arrays);
        let rows = caught(|| {
            let bulk = self.prefix.bulk();
            Ok(bulk.and_then(|bulk| bulk.get_ragged_records(address, records, names, &mut Cx::default())))
        })?;
        Ok(rows.filter(|rows| rows.len() == records.len()))
    }

    /// Makes keys of `records` by evaluating them.
    fn evaluate(&self, records: &[u64], take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
        let evaluated = caught(|| {
            let (bulk, source) = (self.prefix.bulk(), self.source.address);
            let many = bulk.and_then(|bulk| bulk.get_records(source, records, &mut Cx::default()));
            many.ok_or_else(|| Error::config("a stage of the prefix does not evaluate single records of its source"))
        })?;
        let mut lens = Vec::new();
        for (slot, record) in evaluated.into_iter().zip(records) {
            lens.clear();
            let key = match slot {
                Ok(yielded) => self.measure.key_of(yielded.as_ref(), &self.texts, &mut lens),
                Err(error) => bad(error),
            };
            take(key.map_err(|error| error.index(*record))?, &lens);
        }
        Ok(())
    }
}

/// Makes a key for each row.
fn take_rows(rows: &Ragged, take: &mut dyn FnMut(Key, &[u32])) {
    let mut lens = Vec::new();
    for row in 0..rows.len() {
        lens.clear();
        // Rows store each length as `u32`.
        lens.extend(rows.columns().iter().map(|column| column.len_of(row) as u32));
        take(Key::Elements(1), &lens);
    }
}

impl<D: MapDataset + 'static> Keyed for RecordsOf<D> {
    fn lines(&self) -> &[String] {
        &self.source.lines
    }

    fn records(&self) -> u64 {
        self.source.records
    }

    fn names(&self) -> &[String] {
        &self.columns
    }

    fn is_native(&self) -> bool {
        self.source.is_native
    }

    fn bring(&self, records: &[u64]) {
        if let Some(source) = source_at(&*self.prefix, self.source.address) {
            bring(source, records);
        }
    }

    fn make(&self, records: Range<u64>, take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
        let mut at = records.start;
        while at < records.end {
            let some: Vec<u64> = (at..records.end.min(at.saturating_add(TOGETHER))).collect();
            self.make_each(&some, take)?;
            at += some.len() as u64;
        }
        Ok(())
    }

    fn make_each(&self, records: &[u64], take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
        // Rows are views, so their number is not limited.
        if let Some(rows) = self.rows(records)? {
            take_rows(&rows, take);
            return Ok(());
        }
        records.chunks(TOGETHER as usize).try_for_each(|some| self.evaluate(some, take))
    }
}
