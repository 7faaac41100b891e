//! Records of formats that store bytes.

use std::borrow::Cow;

use crate::element::{Element, Value};
use crate::error::Result;
use crate::source::{encode_example, encode_sequence_example};

/// Returns the record of an element: the bytes or the text of its single field, otherwise a `tf.train.Example` of its
/// fields. Returns a `tf.train.SequenceExample` if there are `sequences`.
pub(super) fn record_of<'a>(element: &'a Element, sequences: &[String]) -> Result<Cow<'a, [u8]>> {
    if !sequences.is_empty() {
        return encode_sequence_example(element, sequences).map(Cow::Owned);
    }
    let mut fields = element.iter();
    match (fields.next(), fields.next()) {
        (Some((_, Value::Bytes(bytes))), None) => Ok(Cow::Borrowed(bytes.as_bytes())),
        (Some((_, Value::Str(text))), None) => Ok(Cow::Borrowed(text.as_bytes())),
        _ => encode_example(element).map(Cow::Owned),
    }
}
