//! Records of a source that are evaluated for their keys.

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::keys::SourceOf;
use crate::cx::Cx;
use crate::dataset::map::MapDataset;
use crate::dataset::run::evaluate::caught;
use crate::element::{Element, Name, Ragged};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::{Key, Keyed};
use crate::sync::Locked;

/// Visits each element that an index has yielded: itself, or those of a list.
pub(in crate::dataset) type Visit<T> = fn(&T, &mut dyn FnMut(&dyn Any) -> Result<()>) -> Result<()>;

/// Reads an item of one type as an element; `None` for an item of another.
pub(crate) type AsElement = fn(&dyn Any) -> Option<Result<Element>>;

/// Types of items that stand for elements.
static MORE: Mutex<Vec<AsElement>> = Mutex::new(Vec::new());

/// Has items of one more type read as elements.
#[cfg(feature = "python")]
pub(crate) fn read_also(item: AsElement) {
    MORE.locked().push(item);
}

/// Reads an item as an element, if it is of a type that can be.
pub(super) fn as_element(item: &dyn Any) -> Option<Result<Cow<'_, Element>>> {
    if let Some(element) = item.downcast_ref::<Element>() {
        return Some(Ok(Cow::Borrowed(element)));
    }
    let more = MORE.locked().clone();
    more.into_iter().find_map(|read| read(item)).map(|element| element.map(Cow::Owned))
}

/// Counts the cells of an array.
pub(super) fn length(element: &Element, name: &str) -> Result<usize> {
    Ok(element.array(name)?.shape().first().copied().unwrap_or(1))
}

/// Records that are evaluated at a time.
const TOGETHER: u64 = 64;

/// The records of one source of the prefix `D`.
pub(super) struct RecordsOf<D: MapDataset> {
    prefix: Arc<D>,
    source: SourceOf,
    names: Vec<String>,
    /// The same as names of columns.
    columns: Vec<Name>,
    visit: Visit<D::Item>,
}

impl<D: MapDataset> RecordsOf<D> {
    pub(super) fn new(prefix: Arc<D>, source: SourceOf, names: &[Name], visit: Visit<D::Item>) -> Self {
        Self { prefix, source, names: names.iter().map(Name::to_string).collect(), columns: names.to_vec(), visit }
    }
}

impl<D: MapDataset> RecordsOf<D> {
    /// Some records as rows, of which the lengths are known without making elements; `None` where they are not to be had so.
    fn rows(&self, records: &[u64]) -> Result<Option<Ragged>> {
        if self.names.is_empty() || !self.source.is_alone() {
            return Ok(None);
        }
        let (address, names) = (self.source.address, &self.columns);
        let rows = caught(|| Ok(self.prefix.get_ragged_records(address, records, names, &mut Cx::default())))?;
        Ok(rows.filter(|rows| rows.len() == records.len()))
    }

    /// Makes keys of some records by evaluating them.
    fn evaluate(&self, records: &[u64], take: &mut dyn FnMut(Key, &[u32])) -> Result<()> {
        let evaluated = caught(|| {
            let many = self.prefix.get_records(self.source.address, records, &mut Cx::default());
            many.ok_or_else(|| Error::config("a stage of the prefix does not evaluate single records of its source"))
        })?;
        let mut lens = Vec::new();
        for (slot, record) in evaluated.into_iter().zip(records) {
            lens.clear();
            let key = match slot {
                Ok(yielded) => key_of(yielded.as_ref(), &self.names, self.visit, &mut lens),
                Err(error) => bad(error),
            };
            take(key.map_err(|error| error.index(*record))?, &lens);
        }
        Ok(())
    }
}

/// Makes a key of each row.
fn take_rows(rows: &Ragged, take: &mut dyn FnMut(Key, &[u32])) {
    let mut lens = Vec::new();
    for row in 0..rows.len() {
        lens.clear();
        // Of four bytes each, where they are kept.
        lens.extend(rows.columns().iter().map(|column| column.len_of(row) as u32));
        take(Key::Elements(1), &lens);
    }
}

/// Makes the key of what has come of a record, with the lengths of the arrays `names` of each element as `lens`. Where its data are wrong, it is bad.
///
/// # Errors
/// Errors that are not of the data: they say nothing of the record.
pub(super) fn key_of<T>(yielded: Option<&T>, names: &[String], visit: Visit<T>, lens: &mut Vec<u32>) -> Result<Key> {
    lens.clear();
    let key = yielded.map_or(Ok(Key::Elements(0)), |yielded| measure(yielded, names, visit, lens));
    key.or_else(|error| {
        lens.clear();
        bad(error)
    })
}

/// Makes the key of a record that has failed.
///
/// # Errors
/// `error`, where it is not of the data.
fn bad(error: Error) -> Result<Key> {
    if error.kind() == ErrorKind::Data { Ok(Key::Bad) } else { Err(error) }
}

/// The number of elements that a record has yielded, and the lengths of the arrays `names` of each, behind `lens`.
fn measure<T>(yielded: &T, names: &[String], visit: Visit<T>, lens: &mut Vec<u32>) -> Result<Key> {
    let mut count = 0u32;
    visit(yielded, &mut |element| {
        count = count.saturating_add(1);
        lengths(element, names, lens)
    })?;
    Ok(Key::Elements(count))
}

fn lengths(element: &dyn Any, names: &[String], lens: &mut Vec<u32>) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let element =
        as_element(element).ok_or_else(|| Error::config("lengths are asked of elements that have no arrays"))??;
    for name in names {
        let len = length(&element, name)?;
        lens.push(u32::try_from(len).map_err(|_| Error::data(format!("{name:?} has {len} cells")))?);
    }
    Ok(())
}

impl<D: MapDataset + 'static> Keyed for RecordsOf<D> {
    fn lines(&self) -> &[String] {
        &self.source.lines
    }

    fn records(&self) -> u64 {
        self.source.records
    }

    fn names(&self) -> &[String] {
        &self.names
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
        for some in records.chunks(TOGETHER as usize) {
            match self.rows(some)? {
                Some(rows) => take_rows(&rows, take),
                None => self.evaluate(some, take)?,
            }
        }
        Ok(())
    }
}
