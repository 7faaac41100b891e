//! Formats whose records are bytes.

use crate::element::{Element, Value};
use crate::error::{Error, Result};

/// The record that an element is: its one field, of bytes or text.
pub(super) fn record_of(element: &Element) -> Result<&[u8]> {
    let mut fields = element.iter();
    match (fields.next(), fields.next()) {
        (Some((_, Value::Bytes(bytes))), None) => Ok(bytes.as_bytes()),
        (Some((_, Value::Str(text))), None) => Ok(text.as_bytes()),
        _ => Err(Error::data(format!(
            "records are bytes: an element of one field of bytes or text is needed, got {element:?}"
        ))
        .help("choose one column, or a format that has columns")),
    }
}
