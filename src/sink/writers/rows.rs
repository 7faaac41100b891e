//! Columns of formats whose files are arrays: rows with a fixed type and shape.

use serde_json::Value as Json;

use crate::element::{DType, Element};
use crate::error::{Error, Result};
use crate::sink::schema::{ColumnRules, Infer, Row, Schema, no_type};

pub(super) const COLUMNS: ColumnRules = ColumnRules {
    rows: of,
    ..ColumnRules::of(|schema| of(schema).map(drop), |options| Box::new(Rows::new(options.column.clone())))
};

/// Type and shape of each column in the elements added so far.
pub(super) struct Rows {
    /// The chosen column, which excludes all others.
    column: Option<String>,
    rows: Vec<Row>,
}

impl Rows {
    pub(super) fn new(column: Option<String>) -> Self {
        Self { column, rows: Vec::new() }
    }
}

impl Infer for Rows {
    fn add(&mut self, element: &Element) -> Result<()> {
        let is_written = |name: &str| self.column.as_deref().is_none_or(|column| column == name);
        for (name, _) in element.iter().filter(|(name, _)| is_written(name)) {
            let array = element.array(name)?;
            let (dtype, shape) = (array.dtype(), array.shape());
            match self.rows.iter().find(|(known, ..)| known == name) {
                None => self.rows.push((name.to_owned(), dtype, shape.to_vec())),
                Some((_, was, before)) if (*was, before.as_slice()) != (dtype, shape) => {
                    let text = format!("column {name}: {dtype}{shape:?} after {was}{before:?}");
                    return Err(Error::data(text)
                        .help("rows must have one type and shape: reshape, pad or convert them by an earlier `map`"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn schema(&self) -> Schema {
        let words = |dtype: &DType, shape: &[usize]| match shape {
            [] => dtype.name().to_owned(),
            shape => format!("{dtype}{shape:?}"),
        };
        self.rows.iter().fold(Schema::new(), |schema, (name, dtype, shape)| schema.with(name, words(dtype, shape)))
    }
}

/// Returns the types and shapes of a schema.
fn of(schema: &Schema) -> Result<Vec<Row>> {
    let row = |(name, holds): (&str, &Json)| {
        let row = holds.as_str().and_then(row);
        let (dtype, shape) =
            row.ok_or_else(|| no_type(name, holds, "bool, uint8 … float64, float32[2, 3] and the like"))?;
        Ok((name.to_owned(), dtype, shape))
    };
    schema.columns().map(row).collect()
}

fn row(word: &str) -> Option<(DType, Vec<usize>)> {
    let Some((dtype, dims)) = word.split_once('[') else { return Some((DType::from_name(word)?, Vec::new())) };
    let dims = dims.strip_suffix(']')?.split(',').map(|size| size.trim().parse().ok());
    Some((DType::from_name(dtype)?, dims.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Array;

    #[test]
    fn words_are_read_as_they_are_written() {
        let element = Element::new().with("x", Array::from_vec(vec![1f32, 2.0])).with("n", Array::scalar(3i64));
        let mut rows = Rows::new(None);
        rows.add(&element).unwrap();
        rows.add(&element).unwrap();
        assert_eq!(of(&rows.schema()).unwrap(), rows.rows);
        assert_eq!(rows.schema(), Schema::new().with("x", "float32[2]").with("n", "int64"));
        let error = rows.add(&Element::new().with("x", Array::from_vec(vec![1f32]))).unwrap_err();
        assert_eq!(error.message(), "column x: float32[1] after float32[2]");
        let mut one = Rows::new(Some("n".to_owned()));
        one.add(&element).unwrap();
        assert_eq!(one.schema(), Schema::new().with("n", "int64"));
        for wrong in ["float32[_]", "float32[2", "text", "[2]"] {
            assert!(of(&Schema::new().with("x", wrong)).is_err(), "{wrong}");
        }
    }
}
