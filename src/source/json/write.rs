//! Writing of elements as JSON.

use half::{bf16, f16};
use serde::Serialize;

use crate::element::{Array, DType, Element, Value};
use crate::error::{Error, Result};

/// Writes an element as a JSON object.
pub(in crate::source) fn object(out: &mut Vec<u8>, element: &Element) -> Result<()> {
    out.push(b'{');
    for (at, (name, field)) in element.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        plain(out, name);
        out.push(b':');
        value(out, field).map_err(|e| e.and(&format!(", in field {name:?}")))?;
    }
    out.push(b'}');
    Ok(())
}

pub(in crate::source) fn value(out: &mut Vec<u8>, value: &Value) -> Result<()> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Str(text) => plain(out, &**text),
        Value::Array(array) => numbers(out, array.shape(), array)?,
        Value::List(items) => list(out, items.len(), |out, at| self::value(out, &items[at]))?,
        Value::Tree(tree) => object(out, tree)?,
        Value::Bytes(_) => {
            return Err(Error::data("JSON holds text and numbers, and these are bytes")
                .help("choose a format that holds bytes, or drop the column"));
        }
    }
    Ok(())
}

fn list(out: &mut Vec<u8>, len: usize, item: impl Fn(&mut Vec<u8>, usize) -> Result<()>) -> Result<()> {
    out.push(b'[');
    for at in 0..len {
        if at > 0 {
            out.push(b',');
        }
        item(out, at)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes an array as nested lists, one level for each dimension.
fn numbers(out: &mut Vec<u8>, shape: &[usize], array: &Array) -> Result<()> {
    nested(out, shape, array.bytes(), writer_of(array.dtype()))
}

fn nested(out: &mut Vec<u8>, shape: &[usize], bytes: &[u8], number: Number) -> Result<()> {
    let Some((&rows, inner)) = shape.split_first() else { return number(out, bytes) };
    let row = bytes.len().checked_div(rows).unwrap_or_default();
    list(out, rows, |out, at| nested(out, inner, &bytes[at * row..(at + 1) * row], number))
}

/// A function that writes the number with these bytes.
type Number = fn(&mut Vec<u8>, &[u8]) -> Result<()>;

fn writer_of(dtype: DType) -> Number {
    macro_rules! whole {
        ($type:ty) => {
            |out, bytes| always(out, &<$type>::from_le_bytes(fixed(bytes)))
        };
    }
    match dtype {
        DType::Bool => |out, bytes| always(out, &(bytes != [0])),
        DType::U8 => whole!(u8),
        DType::I8 => whole!(i8),
        DType::U16 => whole!(u16),
        DType::I16 => whole!(i16),
        DType::U32 => whole!(u32),
        DType::I32 => whole!(i32),
        DType::U64 => whole!(u64),
        DType::I64 => whole!(i64),
        DType::F16 => |out, bytes| float(out, f16::from_le_bytes(fixed(bytes)).to_f32(), f32::is_finite),
        DType::BF16 => |out, bytes| float(out, bf16::from_le_bytes(fixed(bytes)).to_f32(), f32::is_finite),
        DType::F32 => |out, bytes| float(out, f32::from_le_bytes(fixed(bytes)), f32::is_finite),
        DType::F64 => |out, bytes| float(out, f64::from_le_bytes(fixed(bytes)), f64::is_finite),
    }
}

/// Converts the bytes of a number to an array. Their length is always `N`, because arrays contain complete numbers.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(bytes);
    number
}

fn float<T: Serialize + Copy>(out: &mut Vec<u8>, number: T, is_finite: fn(T) -> bool) -> Result<()> {
    if is_finite(number) {
        return always(out, &number);
    }
    Err(Error::data("JSON has no number that is not finite").help("replace NaN and infinity, or choose another format"))
}

fn always(out: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
    plain(out, value);
    Ok(())
}

/// Writes a value that always has a JSON form.
fn plain(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("text and finite numbers are written to memory");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Buffer;

    fn written(value: impl Into<Value>) -> Result<String> {
        let mut out = Vec::new();
        object(&mut out, &Element::new().with("a", value))?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_kind_of_value() {
        assert_eq!(written("\"\n\u{1}é").unwrap(), r#"{"a":"\"\n\u0001é"}"#);
        assert_eq!(written(Array::scalar(-7i8)).unwrap(), r#"{"a":-7}"#);
        assert_eq!(written(Array::scalar(u64::MAX)).unwrap(), r#"{"a":18446744073709551615}"#);
        assert_eq!(written(Array::bool(true)).unwrap(), r#"{"a":true}"#);
        assert_eq!(written(Array::scalar(f16::from_f32(0.1))).unwrap(), r#"{"a":0.099975586}"#);
        assert_eq!(written(Value::List(vec![Value::Null, Element::new().into()])).unwrap(), r#"{"a":[null,{}]}"#);
        let square = Array::new(DType::I16, &[2, 1, 2], Buffer::from_vec(vec![1i16, 2, 3, 4])).unwrap();
        assert_eq!(written(square).unwrap(), r#"{"a":[[[1,2]],[[3,4]]]}"#);
        let empty = Array::new(DType::F32, &[0, 3], Buffer::EMPTY).unwrap();
        assert_eq!(written(empty).unwrap(), r#"{"a":[]}"#);
    }

    #[test]
    fn what_json_has_nothing_for_is_refused_by_name() {
        for value in [Value::Bytes(Buffer::copy_from(b"x")), Array::scalar(f32::NAN).into()] {
            assert!(written(value).unwrap_err().message().ends_with(", in field \"a\""));
        }
    }
}
