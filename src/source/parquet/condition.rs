//! Selection of row groups by the statistics in the footer.

use arrow_array::Array as _;
use arrow_schema::{FieldRef, Schema};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;

use super::group::File;
use crate::element::{Array, Name, Value};
use crate::error::{Error, Result};
use crate::source::arrow::columns::{self, Chosen, Columns};
use crate::source::arrow::partitions::Partitions;
use crate::source::arrow::value::{Memory, value};
use crate::source::arrow::widen::widened;

/// Condition on a column, for [`ParquetOptions::row_groups_where`](super::ParquetOptions::row_groups_where): a range of
/// numbers, or a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    column: Name,
    min: Option<f64>,
    max: Option<f64>,
    equals: Option<String>,
}

impl Condition {
    /// Creates a condition on this column that every row satisfies.
    pub fn column(name: impl AsRef<str>) -> Self {
        Self { column: Name::new(name.as_ref()), min: None, max: None, equals: None }
    }

    setters! {
        /// Requires numbers of at least `min`.
        #[must_use]
        pub min(min: f64) => min = Some(min);

        /// Requires numbers of at most `max`.
        #[must_use]
        pub max(max: f64) => max = Some(max);

        /// Requires this text.
        #[must_use]
        pub equals(text: impl Into<String>) => equals = Some(text.into());
    }

    /// Resolves the column in all `files`. A file without the column has no matching row.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no file has the column, the column comes from folders, or its
    /// type has no order. Also the errors of [`columns::unified`].
    pub(super) fn of(&self, files: &[File], all: &Columns) -> Result<Compared<'_>> {
        if all.partitions.has(&self.column) {
            let text = format!("folders give column {:?}, and row groups have no statistics of it", self.column);
            return Err(Error::config(text).help("name the folders to read in `paths`, or use a `filter`"));
        }
        let name = std::slice::from_ref(&self.column);
        let chosen = files.iter().map(|file| {
            Chosen::of(file.metadata.schema(), Some(name), &Partitions::default()).map_err(|e| e.path(&file.path))
        });
        let chosen = chosen.collect::<Result<Vec<_>>>()?;
        let columns = columns::unified(files.iter().map(|file| &*file.path).zip(&chosen))?;
        let column = columns.into_iter().next().ok_or_else(|| Error::config("no files"))?;
        if column.data_type().is_nested() || column.data_type().is_null() {
            let text = format!("column {:?} is of type {}, which has no order", self.column, column.data_type());
            return Err(Error::config(text).path(&files[0].path));
        }
        Ok(Compared { condition: self, column })
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

/// A condition, and the type of its column in all files.
pub(super) struct Compared<'a> {
    condition: &'a Condition,
    column: FieldRef,
}

impl Compared<'_> {
    /// Returns a flag for each row group of a file: false if no row can match. The flag is true for a row group without
    /// statistics.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the type of the column does not match the condition.
    pub(super) fn may_hold(&self, metadata: &ArrowReaderMetadata) -> Result<Vec<bool>> {
        let (name, schema): (_, &Schema) = (self.column.name(), metadata.schema());
        let groups = metadata.metadata().row_groups();
        let Ok(field) = schema.field_with_name(name) else { return Ok(vec![false; groups.len()]) };
        if field.data_type().is_null() {
            return Ok(vec![false; groups.len()]);
        }
        let damaged = |e| Error::data(format!("statistics of column {name:?}: {e}"));
        let statistics = StatisticsConverter::try_new(name, schema, metadata.parquet_schema()).map_err(damaged)?;
        let (least, greatest) = (statistics.row_group_mins(groups), statistics.row_group_maxes(groups));
        let (of, least) = widened(&least.map_err(damaged)?, field, &self.column)?;
        let (_, greatest) = widened(&greatest.map_err(damaged)?, field, &self.column)?;
        let one = |group| {
            if least.is_null(group) || greatest.is_null(group) {
                return Ok(true);
            }
            let at = |array| value(&of, array, group, Memory::Copied);
            self.condition.may_lie_between(&at(&*least)?, &at(&*greatest)?)
        };
        (0..groups.len()).map(one).collect()
    }
}

/// Converts a number as `filter` does. Rounding preserves the order.
fn number(value: &Value) -> Option<f64> {
    let Value::Array(array) = value else { return None };
    let float = |array: &Array| {
        let double = array.as_slice::<f64>().ok().and_then(|one| one.first().copied());
        double.or_else(|| array.as_slice::<f32>().ok().and_then(|one| one.first().map(|&x| x.into())))
    };
    array.as_i64().map(|x| x as f64).or_else(|| float(array))
}

display_as!(Condition, |self, f| {
    write!(f, "{}", self.column)?;
    self.min.iter().try_for_each(|min| write!(f, " >= {min}"))?;
    self.max.iter().try_for_each(|max| write!(f, " <= {max}"))?;
    self.equals.iter().try_for_each(|text| write!(f, " == {text:?}"))
});
