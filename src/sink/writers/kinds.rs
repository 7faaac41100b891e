//! Columns of formats that consist of Arrow's record batches.

use serde_json::{Map, Value as Json, json};

use crate::element::{DType, Element, Name};
use crate::error::Result;
use crate::sink::schema::{ColumnRules, Infer, Schema, no_type};
use crate::source::arrow::kind::Kind;
use crate::source::arrow::logical;

pub(super) static COLUMNS: ColumnRules = ColumnRules::of(|schema| of(schema).map(drop), |_| Box::<Kinds>::default());

/// Kinds of the columns in the elements added so far.
struct Kinds(Kind);

default_as!(Kinds, Self(Kind::Tree(Vec::new())));

impl Infer for Kinds {
    fn add(&mut self, element: &Element) -> Result<()> {
        let before = std::mem::replace(&mut self.0, Kind::Null);
        self.0 = before.and(Kind::of_tree(element)?)?;
        Ok(())
    }

    fn schema(&self) -> Schema {
        let Kind::Tree(fields) = &self.0 else { return Schema::new() };
        schema(fields)
    }
}

/// Returns the fields of a schema.
pub(super) fn of(schema: &Schema) -> Result<Vec<(Name, Kind)>> {
    let known = "bool, uint8 … float64, text, bytes, null, float32[_, 3] and the like, timestamp[us], date32, decimal128(10, 2) and the \
                 like, {\"list\": …} and {\"tree\": …}";
    let field =
        |(name, holds): (&str, &Json)| Ok((Name::new(name), kind(holds).ok_or_else(|| no_type(name, holds, known))?));
    schema.columns().map(field).collect()
}

/// Returns the schema of columns of these kinds.
pub(crate) fn schema(columns: &[(Name, Kind)]) -> Schema {
    columns.iter().fold(Schema::new(), |schema, (name, kind)| schema.with(name.as_str(), words(kind)))
}

fn words(kind: &Kind) -> Json {
    match kind {
        Kind::Null => json!("null"),
        Kind::Number(dtype) => json!(dtype.name()),
        Kind::Text => json!("text"),
        Kind::Bytes => json!("bytes"),
        Kind::Empty(dtype) => json!(format!("{dtype}[_]")),
        Kind::Array(dtype, inner) => {
            let inner: String = inner.iter().map(|size| format!(", {size}")).collect();
            json!(format!("{dtype}[_{inner}]"))
        }
        Kind::List(items) => json!({"list": words(items)}),
        Kind::Tree(fields) => {
            let fields: Vec<Json> =
                fields.iter().map(|(name, kind)| json!({"name": name.as_str(), "type": words(kind)})).collect();
            json!({"tree": fields})
        }
        Kind::Logical(data_type) => json!(logical::word(data_type)),
    }
}

fn kind(words: &Json) -> Option<Kind> {
    match words {
        Json::String(word) => leaf(word),
        Json::Object(object) => nested(object),
        _ => None,
    }
}

fn leaf(word: &str) -> Option<Kind> {
    if let Some(data_type) = logical::of_word(word) {
        return Some(Kind::Logical(data_type));
    }
    let Some((dtype, dims)) = word.split_once('[') else {
        return match word {
            "null" => Some(Kind::Null),
            "text" | "str" => Some(Kind::Text),
            "bytes" => Some(Kind::Bytes),
            number => DType::from_name(number).map(Kind::Number),
        };
    };
    let mut dims = dims.strip_suffix(']')?.split(',').map(str::trim);
    let first = dims.next()? == "_";
    let inner = dims.map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>()?;
    Some(Kind::Array(DType::from_name(dtype)?, inner)).filter(|_| first)
}

fn nested(object: &Map<String, Json>) -> Option<Kind> {
    let (form, inner) = object.iter().next().filter(|_| object.len() == 1)?;
    match form.as_str() {
        "list" => Some(match kind(inner)? {
            Kind::Logical(data_type) if let Some((dtype, sizes)) = logical::fixed(&data_type) => {
                Kind::Array(dtype, sizes)
            }
            // Lists of numbers are inferred as arrays, too.
            Kind::Number(dtype) => Kind::Array(dtype, Vec::new()),
            items => Kind::List(items.into()),
        }),
        "tree" => {
            let fields: Schema = serde_json::from_value(inner.clone()).ok()?;
            let field = |(name, holds): (&str, &Json)| Some((Name::new(name), kind(holds)?));
            fields.columns().map(field).collect::<Option<_>>().map(Kind::Tree)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Array, Value};

    #[test]
    fn words_are_read_as_they_are_written() {
        let deep = Element::new().with("b", Value::Bytes(crate::Buffer::EMPTY)).with("n", Value::Null);
        let rows = Array::new(DType::BF16, &[1, 2, 3], crate::Buffer::from_vec(vec![0u16; 6])).unwrap();
        let element = Element::new()
            .with("z", Array::scalar(1i64))
            .with("rows", rows)
            .with("names", Value::List(vec!["a".into()]))
            .with("deep", Value::List(vec![Value::Tree(deep)]));
        let mut kinds = Kinds::default();
        kinds.add(&element).unwrap();
        let schema = kinds.schema();
        assert_eq!(schema.get("rows"), Some(&json!("bfloat16[_, 2, 3]")));
        let text = serde_json::to_string(&schema).unwrap();
        let Kind::Tree(fields) = kinds.0 else { panic!() };
        assert_eq!(of(&text.parse().unwrap()).unwrap(), fields);
        let short: Schema = r#"{"x": {"list": "int32"}, "t": {"tree": {"a": "str"}}}"#.parse().unwrap();
        let fields = of(&short).unwrap();
        assert_eq!(fields[0].1, Kind::Array(DType::I32, Vec::new()));
        assert_eq!(fields[1].1, Kind::Tree(vec![("a".into(), Kind::Text)]));
        for wrong in ["int", "float32[3, _]", "float32[_", "float32[_,x]", "[_]"] {
            assert!(of(&Schema::new().with("x", wrong)).is_err(), "{wrong}");
        }
        for wrong in
            [json!({}), json!({"list": "text", "tree": {}}), json!({"tree": 1}), json!({"bag": "text"}), json!(1)]
        {
            assert!(of(&Schema::new().with("x", wrong.clone())).is_err(), "{wrong}");
        }
    }
}
