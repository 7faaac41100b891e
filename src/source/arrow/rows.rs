//! Elements on their way into record batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use super::build::record_batch;
use super::kind::{Kind, all};
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// Collects elements. The first of them say what columns there are, unless that is known before.
pub(crate) struct Rows {
    columns: Option<Columns>,
    waiting: Vec<Element>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
    /// Rows that left as batches.
    done: u64,
}

/// The columns that there are.
#[derive(Debug)]
pub(crate) struct Columns {
    fields: Vec<(Name, Kind)>,
    schema: SchemaRef,
}

/// Declarations of columns before there are rows.
#[derive(Clone, Debug)]
pub(crate) enum Declared {
    Nothing,
    /// The columns of this element.
    Example(Element),
    Columns(Vec<(Name, Kind)>),
}

impl Declared {
    /// The columns, if they were said.
    pub(crate) fn columns(&self) -> Result<Option<Columns>> {
        match self {
            Self::Nothing => Ok(None),
            Self::Example(example) => Columns::like(example).map(Some),
            Self::Columns(columns) => Columns::new(columns.clone()).map(Some),
        }
    }
}

impl Columns {
    fn new(fields: Vec<(Name, Kind)>) -> Result<Self> {
        let schema = Arc::new(Schema::new(all(&fields)?));
        Ok(Self { fields, schema })
    }

    /// The kind of values that each of them holds.
    #[cfg(feature = "arrow")]
    pub(crate) fn fields(&self) -> &[(Name, Kind)] {
        &self.fields
    }

    /// The columns of an element.
    fn like(example: &Element) -> Result<Self> {
        Self::of(std::iter::once(example), 0)
    }

    /// The columns that hold all of these elements.
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
    /// Batches of so many rows, or of the rows of so many bytes if they are fewer.
    pub(crate) fn new(rows: usize, bytes: usize, columns: Option<Columns>) -> Self {
        Self { columns, waiting: Vec::new(), bytes: 0, most: rows.max(1), most_bytes: bytes, done: 0 }
    }

    /// Adds a row, and gives the batch that it fills.
    pub(crate) fn push(&mut self, row: &Element) -> Result<Option<RecordBatch>> {
        self.bytes += row.nbytes();
        self.waiting.push(row.clone());
        if self.waiting.len() < self.most && self.bytes < self.most_bytes {
            return Ok(None);
        }
        self.take()
    }

    /// The rows that wait, if there are any.
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

    /// The columns, once they are known; if there were no rows, there are none.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.columns.as_ref().map_or_else(|| Arc::new(Schema::empty()), |columns| columns.schema.clone())
    }

    /// The columns, once they are known.
    #[cfg(feature = "arrow")]
    pub(crate) fn into_columns(self) -> Option<Columns> {
        self.columns
    }

    /// The kind of each column of values, in the order of Arrow's leaves.
    #[cfg(feature = "parquet")]
    pub(crate) fn leaves(&self) -> Vec<Kind> {
        let mut leaves = Vec::new();
        for (_, kind) in self.columns.iter().flat_map(|columns| &columns.fields) {
            collect(kind, &mut leaves);
        }
        leaves
    }

    /// Bytes that wait.
    #[cfg(feature = "parquet")]
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(feature = "parquet")]
fn collect(kind: &Kind, leaves: &mut Vec<Kind>) {
    match kind {
        Kind::List(items) => collect(items, leaves),
        Kind::Tree(fields) => fields.iter().for_each(|(_, kind)| collect(kind, leaves)),
        leaf => leaves.push(leaf.clone()),
    }
}
