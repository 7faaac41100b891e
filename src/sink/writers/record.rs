//! Formats whose records are bytes.

use std::borrow::Cow;

use crate::element::{Element, Value};
use crate::error::Result;
use crate::source::encode_example;

/// The record that an element is: its one field, if it has one of bytes or text; else a `tf.train.Example` of its fields.
pub(super) fn record_of(element: &Element) -> Result<Cow<'_, [u8]>> {
    let mut fields = element.iter();
    match (fields.next(), fields.next()) {
        (Some((_, Value::Bytes(bytes))), None) => Ok(Cow::Borrowed(bytes.as_bytes())),
        (Some((_, Value::Str(text))), None) => Ok(Cow::Borrowed(text.as_bytes())),
        _ => encode_example(element).map(Cow::Owned),
    }
}
