//! Rules for the columns of a format.

use super::{Infer, Schema};
use crate::element::DType;
use crate::error::Result;
use crate::sink::options::SinkOptions;

/// Functions that check declared columns of a format, and infer columns from the first records.
#[derive(Clone, Copy)]
pub(in crate::sink) struct ColumnRules {
    /// Checks that all declared types are types of the format.
    pub(in crate::sink) check: fn(&Schema) -> Result<()>,
    /// Starts the inference of the columns.
    pub(in crate::sink) infer: fn(&SinkOptions) -> Box<dyn Infer>,
    /// Returns the columns of a checked schema whose arrays have a fixed type and shape.
    pub(in crate::sink) rows: fn(&Schema) -> Result<Vec<Row>>,
}

/// A column whose arrays have a fixed type and shape.
pub(in crate::sink) type Row = (String, DType, Vec<usize>);

impl ColumnRules {
    /// Returns rules for columns whose arrays may have any shape.
    pub(in crate::sink) const fn of(
        check: fn(&Schema) -> Result<()>,
        infer: fn(&SinkOptions) -> Box<dyn Infer>,
    ) -> Self {
        Self { check, infer, rows: |_| Ok(Vec::new()) }
    }
}
