//! Arrow's arrays, one row at a time, as values.

use arrow::array::{Array as _, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::*;

use crate::element::{Array, Buffer, Element, Scalar, Value};
use crate::error::{Error, Result};

/// Runs `$body` with `$p` as the typed form of a primitive `$array`, or `$other` if it is none.
macro_rules! with_primitive {
    ($array:expr, $p:ident => $body:expr, _ => $other:expr) => {
        match $array.data_type() {
            DataType::Int8 => with_primitive!(@ $array, $p, Int8Type, $body),
            DataType::Int16 => with_primitive!(@ $array, $p, Int16Type, $body),
            DataType::Int32 => with_primitive!(@ $array, $p, Int32Type, $body),
            DataType::Int64 => with_primitive!(@ $array, $p, Int64Type, $body),
            DataType::UInt8 => with_primitive!(@ $array, $p, UInt8Type, $body),
            DataType::UInt16 => with_primitive!(@ $array, $p, UInt16Type, $body),
            DataType::UInt32 => with_primitive!(@ $array, $p, UInt32Type, $body),
            DataType::UInt64 => with_primitive!(@ $array, $p, UInt64Type, $body),
            DataType::Float16 => with_primitive!(@ $array, $p, Float16Type, $body),
            DataType::Float32 => with_primitive!(@ $array, $p, Float32Type, $body),
            DataType::Float64 => with_primitive!(@ $array, $p, Float64Type, $body),
            DataType::Date32 => with_primitive!(@ $array, $p, Date32Type, $body),
            DataType::Date64 => with_primitive!(@ $array, $p, Date64Type, $body),
            DataType::Time32(TimeUnit::Second) => with_primitive!(@ $array, $p, Time32SecondType, $body),
            DataType::Time32(_) => with_primitive!(@ $array, $p, Time32MillisecondType, $body),
            DataType::Time64(TimeUnit::Microsecond) => with_primitive!(@ $array, $p, Time64MicrosecondType, $body),
            DataType::Time64(_) => with_primitive!(@ $array, $p, Time64NanosecondType, $body),
            DataType::Timestamp(TimeUnit::Second, _) => with_primitive!(@ $array, $p, TimestampSecondType, $body),
            DataType::Timestamp(TimeUnit::Millisecond, _) => with_primitive!(@ $array, $p, TimestampMillisecondType, $body),
            DataType::Timestamp(TimeUnit::Microsecond, _) => with_primitive!(@ $array, $p, TimestampMicrosecondType, $body),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => with_primitive!(@ $array, $p, TimestampNanosecondType, $body),
            DataType::Duration(TimeUnit::Second) => with_primitive!(@ $array, $p, DurationSecondType, $body),
            DataType::Duration(TimeUnit::Millisecond) => with_primitive!(@ $array, $p, DurationMillisecondType, $body),
            DataType::Duration(TimeUnit::Microsecond) => with_primitive!(@ $array, $p, DurationMicrosecondType, $body),
            DataType::Duration(TimeUnit::Nanosecond) => with_primitive!(@ $array, $p, DurationNanosecondType, $body),
            _ => $other,
        }
    };
    (@ $array:expr, $p:ident, $type:ty, $body:expr) => {{
        let $p = $array.as_primitive::<$type>();
        $body
    }};
}

/// Whether columns of this type are read.
pub(crate) fn is_supported(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        List(item) | LargeList(item) | FixedSizeList(item, _) | Map(item, _) => is_supported(item.data_type()),
        Struct(fields) => fields.iter().all(|field| is_supported(field.data_type())),
        Dictionary(_, values) => is_supported(values),
        Interval(_) | Union(..) | RunEndEncoded(..) | ListView(_) | LargeListView(_) => false,
        _ => true,
    }
}

/// Row `row` of `array`, copied out of it.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if the array is not what its type promises.
pub(crate) fn value(array: &dyn arrow::array::Array, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    with_primitive!(array, numbers => Ok(Array::scalar(numbers.value(row)).into()), _ => other(array, row))
}

fn other(array: &dyn arrow::array::Array, row: usize) -> Result<Value> {
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Array::bool(array.as_boolean().value(row)).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Utf8View => array.as_string_view().value(row).into(),
        DataType::Binary => bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row)),
        DataType::Decimal32(..) => array.as_primitive::<Decimal32Type>().value_as_string(row).as_str().into(),
        DataType::Decimal64(..) => array.as_primitive::<Decimal64Type>().value_as_string(row).as_str().into(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row).as_str().into(),
        DataType::Decimal256(..) => array.as_primitive::<Decimal256Type>().value_as_string(row).as_str().into(),
        DataType::List(_) => list(&*array.as_list::<i32>().value(row))?,
        DataType::LargeList(_) => list(&*array.as_list::<i64>().value(row))?,
        DataType::FixedSizeList(..) => list(&*array.as_fixed_size_list().value(row))?,
        DataType::Map(..) => list(&array.as_map().value(row))?,
        DataType::Struct(fields) => {
            let mut tree = Element::with_capacity(fields.len());
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                tree.insert(field.name(), value(column, row)?);
            }
            tree.into()
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = match value(dictionary.keys(), row)? {
                Value::Array(key) => key.as_i64().and_then(|key| usize::try_from(key).ok()),
                _ => None,
            };
            let key = key.filter(|&key| key < dictionary.values().len());
            value(dictionary.values(), key.ok_or_else(|| Error::data("a dictionary key has no value"))?)?
        }
        other => return Err(Error::unsupported(format!("a column of type {other}"))),
    })
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(Buffer::copy_from(bytes))
}

/// All items of one list: an array if they are numbers and none is null.
fn list(items: &dyn arrow::array::Array) -> Result<Value> {
    let rows = || (0..items.len()).map(|row| value(items, row)).collect::<Result<_>>().map(Value::List);
    if items.null_count() > 0 {
        return rows();
    }
    with_primitive!(items, numbers => whole(numbers), _ => rows())
}

fn whole<T: ArrowPrimitiveType<Native: Scalar>>(numbers: &PrimitiveArray<T>) -> Result<Value> {
    let values = numbers.values();
    let data = Buffer::copy_from(bytemuck::cast_slice(values));
    Array::new(T::Native::DTYPE, &[values.len()], data).map(Value::Array)
}
