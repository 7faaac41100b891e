//! Nested values of a record, parsed by serde_json.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::text::Fault;
use super::{MAX_NAMES, repeated, too_many, unexpected};
use crate::element::{Array, Element, Value};

/// Parses the value at `at`, of any kind, with serde_json, which limits the depth to 128.
pub(super) fn other<'a, T: Deserialize<'a>>(line: &'a str, at: usize) -> Result<(T, usize), Fault> {
    let mut values = serde_json::Deserializer::from_str(&line[at..]).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Ok((value, at + values.byte_offset())),
        Some(Err(error)) => Err(located(line, at, &error)),
        None => Err(unexpected(line, at, "a value")),
    }
}

#[cold]
fn located(line: &str, at: usize, error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    let place = line.len().min(at + error.column().saturating_sub(1));
    // The error's column points at the first letter, or up to two bytes after it.
    for at in [place, place.saturating_sub(1), place.saturating_sub(2)] {
        let is_here = |number: &&str| line.as_bytes()[at..].starts_with(number.as_bytes());
        if let Some(number) = ["-Infinity", "NaN", "Infinity"].into_iter().find(is_here) {
            return Fault::new(at, format!("{number} is no JSON, though Python's `json` writes it: write null"));
        }
    }
    Fault::new(place, message)
}

/// A value parsed by serde_json. With `STRICT`, a repeated name is an error at its position.
pub(super) struct Json<const STRICT: bool> {
    pub(super) item: Item,
    /// True if an object in the value repeats a name.
    pub(super) repeats: bool,
}

impl<const STRICT: bool> Json<STRICT> {
    fn new(item: Item) -> Self {
        Self { item, repeats: false }
    }

    fn value(value: impl Into<Value>) -> Self {
        Self::new(Item::Other(value.into()))
    }
}

/// A list item or a scalar. Numbers stay plain in case they become items of an array.
pub(super) enum Item {
    Int(i64),
    Float(f64),
    Other(Value),
}

impl Item {
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Int(number) => Array::scalar(number).into(),
            Self::Float(number) => Array::scalar(number).into(),
            Self::Other(value) => value,
        }
    }
}

impl<'de, const STRICT: bool> Deserialize<'de> for Json<STRICT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor::<STRICT>)
    }
}

struct JsonVisitor<const STRICT: bool>;

impl<'de, const STRICT: bool> Visitor<'de> for JsonVisitor<STRICT> {
    type Value = Json<STRICT>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::value(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Json::value(Array::bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Json::new(Item::Int(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| Json::value(Array::scalar(value)), |value| Json::new(Item::Int(value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Json::new(Item::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Json::value(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (mut list, mut repeats) = (Items::Ints(Vec::new()), false);
        while let Some(next) = seq.next_element::<Self::Value>()? {
            list = list.push(next.item);
            repeats |= next.repeats;
        }
        Ok(Json { item: Item::Other(list.into_value()), repeats })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut tree, mut names, mut repeats) = (Element::new(), 0, false);
        while let Some(name) = map.next_key::<String>()? {
            let next = map.next_value::<Self::Value>()?;
            let again = tree.insert(&name, next.item.into_value()).is_some();
            if again && STRICT {
                return Err(A::Error::custom(repeated(0, &name).message));
            }
            repeats |= again | next.repeats;
            names += 1;
            if names > MAX_NAMES {
                return Err(A::Error::custom(too_many()));
            }
        }
        Ok(Json { item: Item::Other(tree.into()), repeats })
    }
}

/// Items of a list: an array while all are numbers, otherwise values.
enum Items {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Mixed(Vec<Value>),
}

impl Items {
    fn push(self, item: Item) -> Self {
        match (self, item) {
            (Self::Ints(mut list), Item::Int(number)) => {
                list.push(number);
                Self::Ints(list)
            }
            (Self::Ints(list), Item::Float(number)) => {
                Self::Floats(list.into_iter().map(|n| n as f64).chain([number]).collect())
            }
            (Self::Floats(mut list), Item::Float(number)) => {
                list.push(number);
                Self::Floats(list)
            }
            (Self::Floats(mut list), Item::Int(number)) => {
                list.push(number as f64);
                Self::Floats(list)
            }
            (list, item) => {
                let mut list = list.into_list();
                list.push(item.into_value());
                Self::Mixed(list)
            }
        }
    }

    fn into_list(self) -> Vec<Value> {
        match self {
            Self::Ints(list) => list.into_iter().map(|n| Array::scalar(n).into()).collect(),
            Self::Floats(list) => list.into_iter().map(|n| Array::scalar(n).into()).collect(),
            Self::Mixed(list) => list,
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Ints(list) => Array::from_vec(list).into(),
            Self::Floats(list) => Array::from_vec(list).into(),
            Self::Mixed(list) => Value::List(list),
        }
    }
}
