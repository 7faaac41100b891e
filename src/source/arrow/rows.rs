//! Collection of elements into record batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use super::build::record_batch;
use super::kind::{Kind, all};
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// Collector of elements. The first batch determines the columns, unless they were declared.
pub(crate) struct Rows {
    /// The columns, if they are known.
    pub(in crate::source) columns: Option<Columns>,
    waiting: Vec<Element>,
    /// Size of the pending rows in bytes.
    pub(in crate::source) bytes: usize,
    most: usize,
    most_bytes: usize,
    /// Rows that were returned in batches.
    done: u64,
}

/// Columns of the batches.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(in crate::source) fields: Vec<(Name, Kind)>,
    schema: SchemaRef,
}

/// Declaration of columns before the first row.
#[derive(Clone, Debug)]
pub(crate) enum Declared {
    Nothing,
    /// Columns of this element.
    Example(Element),
    Columns(Vec<(Name, Kind)>),
}

impl Declared {
    /// Returns the columns, if they were declared.
    pub(crate) fn columns(&self) -> Result<Option<Columns>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Example(example) => Columns::of(std::iter::once(example), 0).map(Some),
            Self::Columns(columns) => Columns::new(columns.clone()).map(Some),
        }
    }
}

impl Columns {
    fn new(fields: Vec<(Name, Kind)>) -> Result<Self> {
        let schema = Arc::new(Schema::new(all(&fields)?));
        Ok(Self { fields, schema })
    }

    /// Returns the columns that hold all of these elements.
    fn of<'a>(elements: impl Iterator<Item = &'a Element>, first: u64) -> Result<Self> {
        let mut kind = Kind::Tree(Vec::new());
        for (element, row) in elements.zip(first..) {
            kind = Kind::of_tree(element).and_then(|other| kind.and(other)).map_err(|e| e.record(row))?;
        }
        match kind {
            Kind::Tree(fields) => Self::new(fields),
            other => Err(Error::data(format!("{other} where an element is needed"))),
        }
    }
}

impl Rows {
    /// Collects batches of `rows` rows, or fewer if the rows reach `bytes` bytes before.
    pub(crate) fn new(rows: usize, bytes: usize, columns: Option<Columns>) -> Self {
        Self { columns, waiting: Vec::new(), bytes: 0, most: rows.max(1), most_bytes: bytes, done: 0 }
    }

    /// Adds a row; returns a batch if the row fills it.
    pub(crate) fn push(&mut self, row: &Element) -> Result<Option<RecordBatch>> {
        self.bytes += row.nbytes();
        self.waiting.push(row.clone());
        if self.waiting.len() < self.most && self.bytes < self.most_bytes { Ok(None) } else { self.take() }
    }

    /// Returns the pending rows as a batch, if there are any.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let columns = match &mut self.columns {
            Some(columns) => columns,
            none => none.insert(Columns::of(self.waiting.iter(), self.done)?),
        };
        let batch = record_batch(&columns.schema, &columns.fields, &self.waiting);
        let batch = batch.map_err(|(row, error)| error.record(self.done + row as u64))?;
        self.done += self.waiting.len() as u64;
        self.waiting.clear();
        self.bytes = 0;
        Ok(Some(batch))
    }

    /// Returns the schema, which has no columns before they are known.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.columns.as_ref().map_or_else(|| Arc::new(Schema::empty()), |columns| columns.schema.clone())
    }
}
