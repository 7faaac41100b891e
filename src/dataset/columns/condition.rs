//! `filter` in a pipeline file: conditions on a column.

use super::NamedFn;
use crate::dataset::entry::build::Filter;
use crate::dataset::entry::prelude::*;
use crate::element::Value;
use crate::error::Error;

arguments! {
    struct FilterArgs {
        /// Column to test. All given conditions must hold.
        column: Given<String>,
        /// Minimum length, in bytes of text or rows of an array.
        min_length: Option<u64>,
        /// Maximum length, in bytes of text or rows of an array.
        max_length: Option<u64>,
        /// Minimum value, inclusive.
        min: Option<f64>,
        /// Maximum value, inclusive.
        max: Option<f64>,
        /// Text that the value must equal.
        equals: Option<String>,
    }
}

/// Conditions of `filter` on a column.
#[derive(Clone, Debug, Default)]
struct Condition {
    min_length: Option<u64>,
    max_length: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    equals: Option<String>,
}

pub(super) const ENTRY: StageEntry =
    StageEntry::each("filter", "Keeps the elements for which a column meets all given conditions.", &Of(filter));

fn filter(args: FilterArgs, at: &Site<'_>) -> Result<Filter> {
    let FilterArgs { column, min_length, max_length, min, max, equals } = args;
    let column = at.column(&column)?;
    let condition = Condition { min_length, max_length, min, max, equals };
    let params = condition.params(&column);
    if params.len() == column.len() {
        return Err(at.error("needs a condition: one of min_length, max_length, min, max, equals"));
    }
    let keep = move |element: &Element| condition.holds(&column, element.field(&column)?);
    Ok(Filter(NamedFn::filter("filter", params, keep)))
}

impl Condition {
    fn params(&self, column: &str) -> String {
        let mut text = column.to_owned();
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text += &format!(", {name}={value}");
            }
        };
        add("min_length", self.min_length.map(|x| x.to_string()));
        add("max_length", self.max_length.map(|x| x.to_string()));
        add("min", self.min.map(|x| x.to_string()));
        add("max", self.max.map(|x| x.to_string()));
        add("equals", self.equals.as_ref().map(|x| format!("{x:?}")));
        text
    }

    fn holds(&self, column: &str, value: &Value) -> Result<bool> {
        if self.min_length.is_some() || self.max_length.is_some() {
            let length = length(column, value)?;
            if self.min_length.is_some_and(|min| length < min) || self.max_length.is_some_and(|max| length > max) {
                return Ok(false);
            }
        }
        if self.min.is_some() || self.max.is_some() {
            let number = number(column, value)?;
            if self.min.is_some_and(|min| number < min) || self.max.is_some_and(|max| number > max) {
                return Ok(false);
            }
        }
        match (&self.equals, value) {
            (None, _) => Ok(true),
            (Some(want), Value::Str(text)) => Ok(**text == **want),
            (Some(_), other) => Err(wrong(column, "text, which `equals` compares", other)),
        }
    }
}

fn length(column: &str, value: &Value) -> Result<u64> {
    match value {
        Value::Null => Ok(0),
        Value::Str(text) => Ok(text.len() as u64),
        Value::Bytes(bytes) => Ok(bytes.len() as u64),
        Value::List(items) => Ok(items.len() as u64),
        Value::Array(array) if !array.shape().is_empty() => Ok(array.shape()[0] as u64),
        other => Err(wrong(column, "something with a length", other)),
    }
}

fn number(column: &str, value: &Value) -> Result<f64> {
    let number = if let Value::Array(array) = value {
        array.as_i64().map(|x| x as f64).or_else(|| match (array.size(), array.as_slice::<f64>()) {
            (1, Ok(one)) => Some(one[0]),
            _ => array.as_slice::<f32>().ok().filter(|s| s.len() == 1).map(|one| one[0].into()),
        })
    } else {
        None
    };
    number.ok_or_else(|| wrong(column, "one number", value))
}

#[cold]
fn wrong(column: &str, want: &str, got: &Value) -> Error {
    Error::data(format!("column `{column}` is {got:?}, expected {want}"))
}
