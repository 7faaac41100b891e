//! Conversion of elements to a schema.

use std::borrow::Cow;

use super::{ColumnRules, Row, Schema, dtype_of};
use crate::element::{Array, DType, Element, Value, cast};
use crate::error::{Error, Result};

/// Conversion of elements before the writer of the format receives them.
#[derive(Debug, Default)]
pub(in crate::sink) struct Fit {
    /// Columns with a declared type, to which numbers of other types are converted.
    casts: Vec<(String, DType)>,
    /// Columns whose arrays have a fixed type and shape.
    rows: Vec<Row>,
}

impl Fit {
    pub(in crate::sink) fn new(rules: Option<&ColumnRules>, schema: &Schema, declared: &Schema) -> Result<Self> {
        let casts = declared.columns().filter_map(|(name, holds)| Some((name.to_owned(), dtype_of(holds)?))).collect();
        let rows = rules.map_or_else(|| Ok(Vec::new()), |rules| (rules.rows)(schema))?;
        Ok(Self { casts, rows })
    }

    /// Converts the element for the writer.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a number does not fit the declared type, or if an array has
    /// another shape.
    pub(in crate::sink) fn apply<'a>(&self, element: &'a Element) -> Result<Cow<'a, Element>> {
        let mut element = Cow::Borrowed(element);
        for (name, dtype) in &self.casts {
            if let Some(Value::Array(array)) = element.get(name)
                && array.dtype() != *dtype
            {
                let array = cast(array, *dtype).ok_or_else(|| not_held(name, array, *dtype))?;
                element.to_mut().insert(name, array);
            }
        }
        self.check(&element)?;
        Ok(element)
    }

    fn check(&self, element: &Element) -> Result<()> {
        for (name, dtype, shape) in &self.rows {
            let Some(Value::Array(array)) = element.get(name) else { continue };
            if array.dtype() != *dtype || array.shape() != shape {
                let text = format!(
                    "column {name}: {}{:?}, but the column holds {dtype}{shape:?}",
                    array.dtype(),
                    array.shape()
                );
                return Err(Error::data(text)
                    .help("rows must have one type and shape: reshape, pad or convert them by an earlier `map`"));
            }
        }
        Ok(())
    }
}

#[cold]
fn not_held(name: &str, array: &Array, dtype: DType) -> Error {
    Error::data(format!("column {name}: {array:?} holds a number that does not fit {dtype}"))
        .help("declare a type that holds all numbers of the column")
}
