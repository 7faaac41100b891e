//! Elements as `tf.train.Example`.

use super::super::varint::{put_bytes, put_varint};
use super::wire::Kind;
use crate::element::{Array, DType, Element, Value};
use crate::error::{Error, ErrorKind, Result};

/// The bytes of a `tf.train.Example` of the fields of `element`.
///
/// Arrays of whole numbers and truth values become lists of `int64`, those of floats lists of `float`, row-major: shapes are not part
/// of the format. Bytes, text and lists of them become lists of bytes, and null a feature without a list.
/// `float64` is rounded to `float32`, the only float of the format.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the name of a field that is a tree, a list of anything else, or a number above the
/// largest `int64`.
///
/// # Determinism
/// Features are sorted by name: the same fields in any order make the same bytes, which are those of protocol buffers' own
/// deterministic serialisation.
pub fn encode_example(element: &Element) -> Result<Vec<u8>> {
    let mut fields: Vec<_> = element.iter().collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    let mut map = Vec::with_capacity(element.nbytes() + 32 * fields.len());
    for (name, value) in fields {
        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, name.as_bytes());
        put_bytes(&mut entry, 2, &feature(value).map_err(|e| in_field(name, &e))?);
        put_bytes(&mut map, 1, &entry);
    }
    let mut example = Vec::with_capacity(map.len() + 11);
    put_bytes(&mut example, 1, &map);
    Ok(example)
}

#[cold]
fn in_field(name: &str, error: &Error) -> Error {
    let told = Error::new(ErrorKind::Data, format!("field {name:?}: {}", error.message()));
    error.help_text().into_iter().fold(told, Error::help)
}

fn feature(value: &Value) -> Result<Vec<u8>> {
    let (kind, list) = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(array) => numbers(array)?,
        Value::List(values) => (Kind::Bytes, strings(values)?),
        Value::Str(_) | Value::Bytes(_) => (Kind::Bytes, strings(std::slice::from_ref(value))?),
        Value::Tree(_) => {
            return Err(Error::data("a tree, which an example has no place for")
                .help("leave the column out, or put its fields beside the others by a `map` in front"));
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

/// A packed list; an empty one has no bytes at all.
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

/// Calls `f` with each number of an array of `$type`s.
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
