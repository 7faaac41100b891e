//! Columns of a data set, identical in all of its shards.
//!
//! The first records determine the columns before anything is written. The manifest keeps the columns, and a resume
//! continues with them. Formats without columns have no schema.

mod fit;
mod infer;
mod inference;
mod rules;

use std::fmt;
use std::str::FromStr;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

pub(super) use self::fit::Fit;
pub(super) use self::infer::Infer;
pub(super) use self::inference::Inference;
pub(super) use self::rules::{ColumnRules, Row};
use super::format::SinkFormat;
use crate::element::DType;
use crate::error::{Error, Result};

/// Columns and their types, in the type names of the format.
///
/// | formats | words |
/// |---|---|
/// | Parquet, Arrow, Hugging Face | `int64` and the other types of numbers; `float32[_]`, `float32[_, 3]`: arrays whose first dimension may differ from row to row; `float32[3]`: of a fixed size; `timestamp[us]`, `timestamp[us, tz=UTC]`, `date32`, `date64`, `time32[ms]`, `time64[us]`, `duration[ns]` of whole numbers; `decimal128(10, 2)` of text; `fixed_size_binary[16]`; `text`, `bytes`, `null`; `{"list": …}`, `{"tree": {"name": …}}` |
/// | MDS | its encodings: `int`, `float32`, `ndarray:uint16`, `str`, `bytes`, `json`, `jpeg`, … |
/// | WebDataset | `plain`: text and bytes as they are; `npy`, `json`: files `NAME.npy` and `NAME.json` |
/// | NumPy, safetensors | `float32`, `float32[2, 3]`: exact shapes |
///
/// ```
/// use gristmill::sink::Schema;
/// let schema: Schema = r#"{"score": "float64", "tags": {"list": "text"}}"#.parse()?;
/// assert_eq!(schema, Schema::new().with("score", "float64").with("tags", serde_json::json!({"list": "text"})));
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Schema(Vec<Column>);

/// A column of a [`Schema`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    holds: Json,
}

impl Schema {
    /// Returns a schema without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column, or replaces the type of an existing column.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, holds: impl Into<Json>) -> Self {
        let (name, holds) = (name.into(), holds.into());
        match self.0.iter_mut().find(|column| column.name == name) {
            Some(column) => column.holds = holds,
            None => self.0.push(Column { name, holds }),
        }
        self
    }

    /// Returns the names and types of the columns, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.0.iter().map(|column| (&*column.name, &column.holds))
    }

    /// Returns the type of a column.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.columns().find(|(known, _)| *known == name).map(|(_, holds)| holds)
    }

    /// Returns true if there are no columns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that shards of the format can be written with this schema.
    pub(super) fn check(&self, format: SinkFormat) -> Result<()> {
        match format.facts()?.columns {
            _ if self.is_empty() => Ok(()),
            Some(rules) => (rules.check)(self),
            None => Err(Error::config(format!("{format} has no columns whose types are declared"))
                .help("omit the schema, or write Parquet, Arrow or MDS")),
        }
    }
}

/// Returns the number type of a column that holds numbers, plain, in arrays or in encodings of MDS.
fn dtype_of(holds: &Json) -> Option<DType> {
    let word = holds.as_str()?;
    let word = word.strip_prefix("ndarray:").unwrap_or(word);
    let name = word.split(['[', ':']).next().unwrap_or_default();
    if name == "int" { Some(DType::I64) } else { DType::from_name(name) }
}

/// Returns the error for a column whose type does not exist in the format.
#[cold]
pub(super) fn no_type(name: &str, holds: &Json, known: &str) -> Error {
    Error::config(format!("column {name}: {holds} is no type of the format")).help(format!("there are {known}"))
}

/// Parses an object of names and types, or a list of `{"name": …, "type": …}` as in manifests.
impl FromStr for Schema {
    type Err = Error;

    fn from_str(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|e| {
            Error::config(format!("not a schema: {e}"))
                .help("it is an object of columns and their types: {\"score\": \"float64\"}")
        })
    }
}

/// Keeps the order of the columns in an object, which [`Json`] does not do.
impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Columns;

        impl<'de> Visitor<'de> for Columns {
            type Value = Schema;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("columns and their types")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Schema, A::Error> {
                let mut schema = Schema::new();
                while let Some((name, holds)) = map.next_entry::<String, Json>()? {
                    schema = schema.with(name, holds);
                }
                Ok(schema)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut columns: A) -> Result<Schema, A::Error> {
                let mut schema = Schema::new();
                while let Some(Column { name, holds }) = columns.next_element()? {
                    schema = schema.with(name, holds);
                }
                Ok(schema)
            }
        }

        deserializer.deserialize_any(Columns)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_columns_is_kept() {
        let schema: Schema = r#"{"z": "int64", "a": {"list": "text"}}"#.parse().unwrap();
        assert_eq!(schema.columns().collect::<Vec<_>>(), [("z", &json!("int64")), ("a", &json!({"list": "text"}))]);
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!(text.parse::<Schema>().unwrap(), schema);
        for wrong in ["", "1", r#"[{"name": "x"}]"#, r#"["x"]"#] {
            assert!(wrong.parse::<Schema>().unwrap_err().message().starts_with("not a schema"), "{wrong}");
        }
    }

    #[test]
    fn words_of_numbers() {
        let dtype = |word: &str| dtype_of(&json!(word));
        for word in ["float32", "float32[_, 2]", "float32[3]", "ndarray:float32", "ndarray:float32:2,3"] {
            assert_eq!(dtype(word), Some(DType::F32), "{word}");
        }
        assert_eq!((dtype("int"), dtype("text"), dtype("ndarray")), (Some(DType::I64), None, None));
        assert!(Schema::new().with("x", "int64").check(SinkFormat::Jsonl).is_err());
        assert!(Schema::new().check(SinkFormat::Jsonl).is_ok());
    }
}
