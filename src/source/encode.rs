//! Encoding of values as files: the inverse of [`decode`](super::decode).

use std::borrow::Cow;

use crate::element::Array;
use {
    super::{json, npy},
    crate::element::Value,
    crate::error::{Error, Result},
};

/// Encodes a value as a file, by the last extension of its name. Bytes are unchanged, and so is text, except as JSON.
/// Other values are encoded if the format can represent them.
pub(super) fn by_extension<'a>(name: &str, value: &'a Value) -> Result<Cow<'a, [u8]>> {
    let extension = name.rsplit('.').next().unwrap_or(name);
    match (extension, value) {
        (_, Value::Bytes(bytes)) => Ok(Cow::Borrowed(bytes.as_bytes())),
        ("json" | "jsn", value) => {
            let mut text = Vec::new();
            json::write::value(&mut text, value)?;
            Ok(text.into())
        }
        (_, Value::Str(text)) => Ok(Cow::Borrowed(text.as_bytes())),
        ("cls" | "cls2" | "class" | "count" | "index" | "inx" | "id", Value::Array(array)) => {
            let number = whole(array).ok_or_else(|| wrong(extension, value))?;
            Ok(number.into_bytes().into())
        }
        ("npy", Value::Array(array)) => Ok(npy::encode(array)?.into()),
        _ => Err(wrong(extension, value)),
    }
}

/// Returns the decimal digits of an integer of any width. Returns `None` for other arrays.
pub(super) fn whole(array: &Array) -> Option<String> {
    match (array.shape(), array.as_i64(), array.as_slice::<u64>()) {
        ([], Some(number), _) => Some(number.to_string()),
        ([], None, Ok([number])) => Some(number.to_string()),
        _ => None,
    }
}

#[cold]
fn wrong(extension: &str, value: &Value) -> Error {
    let what = match value {
        Value::Array(array) => format!("an array {}{:?}", array.dtype(), array.shape()),
        other => other.kind().to_owned(),
    };
    Error::data(format!("{what} cannot be written as .{extension}"))
        .help("bytes and text are written as they are, arrays as .npy, and what JSON holds as .json")
}
