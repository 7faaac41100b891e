//! Row groups that need not be read, by what the footer says of them.

use std::fmt;

use arrow_array::Array as _;
use arrow_schema::Schema;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;

use crate::element::{Array, Name, Value};
use crate::error::{Error, Result};
use crate::source::arrow::value::{Memory, value};
use crate::source::columns::instead;

/// Condition that must be true of a row, for [`ParquetOptions::row_groups_where`](super::ParquetOptions::row_groups_where): numbers within limits, or a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    column: Name,
    min: Option<f64>,
    max: Option<f64>,
    equals: Option<String>,
}

impl Condition {
    /// Nothing yet, of this column.
    pub fn column(name: impl AsRef<str>) -> Self {
        Self { column: Name::new(name.as_ref()), min: None, max: None, equals: None }
    }

    /// The number is not less.
    #[must_use]
    pub fn min(mut self, min: f64) -> Self {
        self.min = Some(min);
        self
    }

    /// The number is not greater.
    #[must_use]
    pub fn max(mut self, max: f64) -> Self {
        self.max = Some(max);
        self
    }

    /// The text is this.
    #[must_use]
    pub fn equals(mut self, text: impl Into<String>) -> Self {
        self.equals = Some(text.into());
        self
    }

    /// Whether each row group of a file may hold such a row. One of which the footer says nothing may.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if there is no such column, or if it does not hold what it is compared with.
    pub(super) fn may_hold(&self, metadata: &ArrowReaderMetadata) -> Result<Vec<bool>> {
        let schema: &Schema = metadata.schema();
        let field = schema.field_with_name(&self.column);
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let field = field.map_err(|_| Error::config(instead(&self.column, names())))?;
        if field.data_type().is_nested() || field.data_type().is_null() {
            let text = format!("column {:?} is of type {}, which has no order", self.column, field.data_type());
            return Err(Error::config(text));
        }
        let damaged = |e| Error::data(format!("statistics of column {:?}: {e}", self.column));
        let groups = metadata.metadata().row_groups();
        let statistics =
            StatisticsConverter::try_new(&self.column, schema, metadata.parquet_schema()).map_err(damaged)?;
        let least = statistics.row_group_mins(groups).map_err(damaged)?;
        let greatest = statistics.row_group_maxes(groups).map_err(damaged)?;
        let one = |group| {
            if least.is_null(group) || greatest.is_null(group) {
                return Ok(true);
            }
            let at = |array| value(field, array, group, Memory::Copied);
            self.may_lie_between(&at(&*least)?, &at(&*greatest)?)
        };
        (0..groups.len()).map(one).collect()
    }

    fn may_lie_between(&self, least: &Value, greatest: &Value) -> Result<bool> {
        let wrong = |want: &str| {
            Error::config(format!("column {:?} holds {}, which is compared with {want}", self.column, least.kind()))
        };
        if self.min.is_some() || self.max.is_some() {
            let (Some(least), Some(greatest)) = (number(least), number(greatest)) else {
                return Err(wrong("a number"));
            };
            if self.min.is_some_and(|min| greatest < min) || self.max.is_some_and(|max| least > max) {
                return Ok(false);
            }
        }
        match (&self.equals, least, greatest) {
            (None, ..) => Ok(true),
            (Some(text), Value::Str(least), Value::Str(greatest)) => {
                Ok((&**least..=&**greatest).contains(&text.as_str()))
            }
            (Some(_), ..) => Err(wrong("a text")),
        }
    }
}

/// As `filter` compares: what is rounded keeps its order.
fn number(value: &Value) -> Option<f64> {
    let Value::Array(array) = value else { return None };
    let float = |array: &Array| {
        let double = array.as_slice::<f64>().ok().and_then(|one| one.first().copied());
        double.or_else(|| array.as_slice::<f32>().ok().and_then(|one| one.first().map(|&x| x.into())))
    };
    array.as_i64().map(|x| x as f64).or_else(|| float(array))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.column)?;
        self.min.iter().try_for_each(|min| write!(f, " >= {min}"))?;
        self.max.iter().try_for_each(|max| write!(f, " <= {max}"))?;
        self.equals.iter().try_for_each(|text| write!(f, " == {text:?}"))
    }
}
