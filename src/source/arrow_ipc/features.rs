//! Columns as features of Hugging Face's `datasets`.
//!
//! A list is a `Sequence`, and a list of trees is a JSON list with a single tree. All versions of `datasets` read both,
//! and later versions convert them to their `List`.

use serde_json::{Map, Value as Json, json};

use crate::element::{DType, Name};
use crate::source::arrow::kind::Kind;
use crate::source::arrow::logical::{fixed, word};

/// Returns the features of columns, as in `dataset_info.json`.
pub(crate) fn features(columns: &[(Name, Kind)]) -> Json {
    let feature = |(name, kind): &(Name, Kind)| (name.to_string(), feature(kind));
    Json::Object(columns.iter().map(feature).collect::<Map<_, _>>())
}

fn feature(kind: &Kind) -> Json {
    match kind {
        Kind::Null => value("null"),
        Kind::Number(dtype) => number(*dtype),
        Kind::Text => value("string"),
        Kind::Bytes => value("binary"),
        Kind::Array(dtype, inner) => sequence(of_sizes(number(*dtype), inner)),
        Kind::Empty(dtype) => sequence(number(*dtype)),
        // A `Sequence` of trees would be a tree of lists.
        Kind::List(items) if matches!(**items, Kind::Tree(_)) => json!([feature(items)]),
        Kind::List(items) => sequence(feature(items)),
        Kind::Tree(fields) => features(fields),
        Kind::Logical(data_type) => match fixed(data_type) {
            Some((dtype, sizes)) => of_sizes(number(dtype), &sizes),
            None => value(&word(data_type)),
        },
    }
}

/// Returns nested lists of fixed sizes, the outermost size first.
fn of_sizes(items: Json, sizes: &[usize]) -> Json {
    let list = |items, size: &usize| json!({"feature": items, "length": size, "_type": "Sequence"});
    sizes.iter().rev().fold(items, list)
}

fn sequence(items: Json) -> Json {
    json!({"feature": items, "_type": "Sequence"})
}

/// Returns the feature of a number; `bfloat16` is stored as its bits.
fn number(dtype: DType) -> Json {
    value(if dtype == DType::BF16 { "uint16" } else { dtype.name() })
}

fn value(dtype: &str) -> Json {
    json!({"dtype": dtype, "_type": "Value"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_columns() {
        let tree = Kind::Tree(vec![("b".into(), Kind::Bytes)]);
        let columns = [
            ("i".into(), Kind::Number(DType::BF16)),
            ("x".into(), Kind::Array(DType::F32, vec![2])),
            ("t".into(), Kind::List(tree.into())),
        ];
        let expected = json!({
            "i": {"dtype": "uint16", "_type": "Value"},
            "x": {
                "feature": {"feature": {"dtype": "float32", "_type": "Value"}, "length": 2, "_type": "Sequence"},
                "_type": "Sequence"
            },
            "t": [{"b": {"dtype": "binary", "_type": "Value"}}],
        });
        assert_eq!(features(&columns), expected);
    }
}
