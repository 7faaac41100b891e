//! The rules that columns of a format keep.

use super::{Infer, Schema};
use crate::element::DType;
use crate::error::Result;
use crate::sink::options::SinkOptions;

/// Functions by which columns of a format are declared, and inferred from the first records.
#[derive(Clone, Copy)]
pub(in crate::sink) struct ColumnRules {
    /// Checks that all columns are declared in words of the format.
    pub(in crate::sink) check: fn(&Schema) -> Result<()>,
    /// Begins to infer them.
    pub(in crate::sink) infer: fn(&SinkOptions) -> Box<dyn Infer>,
    /// The columns whose arrays have one type and shape, of a schema that is checked.
    pub(in crate::sink) rows: fn(&Schema) -> Result<Vec<Row>>,
}

/// A column whose arrays are of one type and shape.
pub(in crate::sink) type Row = (String, DType, Vec<usize>);

impl ColumnRules {
    /// Rules of columns whose arrays may have any shape.
    pub(in crate::sink) const fn of(
        check: fn(&Schema) -> Result<()>,
        infer: fn(&SinkOptions) -> Box<dyn Infer>,
    ) -> Self {
        Self { check, infer, rows: |_| Ok(Vec::new()) }
    }
}
