//! Encoding of elements as `tf.train.Example` and `tf.train.SequenceExample`.

use super::wire::Kind;
use crate::element::{Array, DType, Element, Value};
use crate::error::{Error, Result};
use crate::varint::{put_bytes, put_varint};

/// Encodes the fields of `element` as a `tf.train.Example`.
///
/// Arrays of whole numbers or booleans become lists of `int64`, and arrays of floats lists of `float`, in row-major
/// order. The format has no shapes. Bytes, text and lists of them become lists of bytes. Null becomes a feature without
/// a list. `float64` is rounded to `float32`, the only float of the format.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the name of a field that is a tree, another kind of list, or a
/// number above the largest `int64`.
///
/// # Determinism
/// Features are sorted by name, so the order of fields does not matter. The bytes equal protocol buffers' deterministic
/// serialization.
pub fn encode_example(element: &Element) -> Result<Vec<u8>> {
    let map = map(element.iter(), feature)?;
    let mut example = Vec::with_capacity(map.len() + 11);
    put_bytes(&mut example, 1, &map);
    Ok(example)
}

/// Encodes an element as a `tf.train.SequenceExample`. Fields named in `sequences` become sequences, others the
/// context.
///
/// A sequence is a list with an item per step, or an array with a row per step. Each step is encoded as in
/// [`encode_example`]. Sequences from [`ExampleParser`](super::ExampleParser) encode to the sequences of the original
/// record.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the name of the field, and with the step, if a value cannot be
/// encoded; also if the element lacks a field of `sequences`.
///
/// # Determinism
/// As for [`encode_example`].
pub fn encode_sequence_example<S: AsRef<str>>(element: &Element, sequences: &[S]) -> Result<Vec<u8>> {
    if let Some(name) = sequences.iter().map(AsRef::as_ref).find(|name| element.get(name).is_none()) {
        return Err(Error::data(format!("field {name:?} is missing, and a sequence is required"))
            .help("if a record has no steps of the field, give it an empty list"));
    }
    let (steps, context): (Vec<_>, Vec<_>) =
        element.iter().partition(|(name, _)| sequences.iter().any(|sequence| sequence.as_ref() == *name));
    let (context, steps) = (map(context, feature)?, map(steps, feature_list)?);
    let mut example = Vec::with_capacity(context.len() + steps.len() + 22);
    put_bytes(&mut example, 1, &context);
    put_bytes(&mut example, 2, &steps);
    Ok(example)
}

/// Encodes a map from field names to their messages, sorted by name.
fn map<'a>(
    fields: impl IntoIterator<Item = (&'a str, &'a Value)>,
    message: impl Fn(&Value) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mut fields: Vec<_> = fields.into_iter().collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    let mut map = Vec::new();
    for (name, value) in fields {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, &message(value).map_err(|e| e.of(&format!("field {name:?}")))?);
        put_bytes(&mut map, 1, &entry);
    }
    Ok(map)
}

/// Encodes a list with a feature for each step.
fn feature_list(value: &Value) -> Result<Vec<u8>> {
    let mut list = Vec::new();
    let mut put = |step: usize, value: &Value| -> Result<()> {
        let feature = feature(value).map_err(|e| e.and(&format!(" (in step {step})")))?;
        put_bytes(&mut list, 1, &feature);
        Ok(())
    };
    match value {
        Value::List(steps) => steps.iter().enumerate().try_for_each(|(step, value)| put(step, value))?,
        Value::Array(array) if !array.shape().is_empty() => {
            let mut rows = (0..array.shape()[0]).filter_map(|step| Some((step, array.row(step)?)));
            rows.try_for_each(|(step, row)| put(step, &row.into()))?;
        }
        other => {
            return Err(Error::data(format!("{}, where a sequence has a list or rows", other.kind()))
                .help("leave it out of the sequences, and it is part of the context"));
        }
    }
    Ok(list)
}

fn feature(value: &Value) -> Result<Vec<u8>> {
    let (kind, list) = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(array) => numbers(array)?,
        Value::List(values) => (Kind::Bytes, strings(values)?),
        Value::Str(_) | Value::Bytes(_) => (Kind::Bytes, strings(std::slice::from_ref(value))?),
        Value::Tree(_) => {
            return Err(Error::data("a tree, which an example has no place for")
                .help("drop the column, or move its fields to the top level by an earlier `map`"));
        }
    };
    let mut feature = Vec::with_capacity(list.len() + 11);
    put_bytes(&mut feature, kind.number(), &list);
    Ok(feature)
}

fn strings(values: &[Value]) -> Result<Vec<u8>> {
    let mut list = Vec::new();
    for value in values {
        match value {
            Value::Str(text) => put_bytes(&mut list, 1, text.as_bytes()),
            Value::Bytes(bytes) => put_bytes(&mut list, 1, bytes.as_bytes()),
            other => {
                return Err(Error::data(format!("a list with {} in it, where an example has strings", other.kind())));
            }
        }
    }
    Ok(list)
}

/// Encodes a packed list; an empty list has no bytes.
fn numbers(array: &Array) -> Result<(Kind, Vec<u8>)> {
    let mut packed = Vec::with_capacity(array.bytes().len());
    let kind = match array.dtype() {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => {
            floats(array, &mut packed);
            Kind::Float
        }
        _ => {
            int64s(array, &mut packed)?;
            Kind::Int64
        }
    };
    let mut list = Vec::with_capacity(packed.len() + 11);
    if !packed.is_empty() {
        put_bytes(&mut list, 1, &packed);
    }
    Ok((kind, list))
}

/// Calls `$f` with each number of an array of `$type`.
macro_rules! each {
    ($array:expr, $type:ty, $f:expr) => {{
        let (numbers, _) = $array.bytes().as_chunks::<{ size_of::<$type>() }>();
        numbers.iter().map(|bytes| <$type>::from_le_bytes(*bytes)).for_each($f)
    }};
}

fn floats(array: &Array, out: &mut Vec<u8>) {
    let mut put = |value: f32| out.extend_from_slice(&value.to_le_bytes());
    match array.dtype() {
        DType::F16 => each!(array, half::f16, |value| put(value.to_f32())),
        DType::BF16 => each!(array, half::bf16, |value| put(value.to_f32())),
        DType::F64 => each!(array, f64, |value| put(value as f32)),
        _ => out.extend_from_slice(array.bytes()),
    }
}

fn int64s(array: &Array, out: &mut Vec<u8>) -> Result<()> {
    let mut largest = 0;
    let mut put = |value: i64| put_varint(out, value as u64);
    match array.dtype() {
        DType::I8 => each!(array, i8, |value| put(value.into())),
        DType::I16 => each!(array, i16, |value| put(value.into())),
        DType::I32 => each!(array, i32, |value| put(value.into())),
        DType::I64 => each!(array, i64, put),
        DType::U16 => each!(array, u16, |value| put(value.into())),
        DType::U32 => each!(array, u32, |value| put(value.into())),
        DType::U64 => each!(array, u64, |value| {
            largest = largest.max(value);
            put(value as i64);
        }),
        _ => array.bytes().iter().for_each(|&value| put(value.into())),
    }
    if i64::try_from(largest).is_err() {
        return Err(Error::data(format!("{largest} is more than the largest int64")));
    }
    Ok(())
}
