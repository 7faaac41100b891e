//! Elements made by `serde_json` directly, to compare with the parser's own rate.

use std::fmt;

use gristmill::{Array, Element, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Returns the element of a line with the types that `Jsonl` documents for text, numbers, booleans, lists and objects.
pub(crate) fn element(line: &str) -> Element {
    let mut json = serde_json::Deserializer::from_str(line);
    let Ok(Value::Tree(element)) = Any.deserialize(&mut json) else { panic!("no object: {line}") };
    json.end().expect("nothing behind it");
    element
}

struct Any;

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Array::bool(value).into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Array::scalar(value).into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| Array::scalar(value), Array::scalar).into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Array::scalar(value).into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Any)? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut element = Element::with_capacity(4);
        while let Some(name) = fields.next_key::<std::borrow::Cow<'de, str>>()? {
            element.insert(name, fields.next_value_seed(Any)?);
        }
        Ok(element.into())
    }
}
