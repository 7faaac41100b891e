//! Rows of Arrow arrays as values.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array as _, ArrayRef, ArrowPrimitiveType, GenericBinaryArray, OffsetSizeTrait, PrimitiveArray};
use arrow_schema::*;

use super::tensors::tensor;
use super::types::is_bfloat16;
use crate::element::{Array, Buffer, DType, Element, Owner, Scalar, Text, Value};
use crate::error::{Error, Result};

/// Runs `$body` with `$p` as the typed form of a primitive `$array`, or `$other` if the array is not primitive.
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

/// Returns true if columns of this type can be read.
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

/// Returns true if the conversion of a [value](value) of this type may fail.
pub(super) fn may_fail(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        List(item) | LargeList(item) | FixedSizeList(item, _) | Map(item, _) => may_fail(item.data_type()),
        Struct(fields) => fields.iter().any(|field| may_fail(field.data_type())),
        // A key may be out of range.
        Dictionary(..) => true,
        other => !is_supported(other),
    }
}

/// Ownership of a value's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The value owns a copy: the batch may be dropped.
    Copied,
    /// Arrays and bytes view the batch's memory and keep it alive.
    Viewed,
}

impl Memory {
    pub(super) fn of(self, bytes: &arrow_buffer::Buffer) -> Buffer {
        match self {
            Self::Viewed => Buffer::from_owner(Arc::new(View(bytes.clone()))),
            Self::Copied => Buffer::copy_from(bytes),
        }
    }
}

struct View(arrow_buffer::Buffer);

impl Owner for View {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Returns row `row` of `array`, a column of `field`.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) if the array contradicts its type.
pub(crate) fn value(field: &Field, array: &dyn arrow_array::Array, row: usize, memory: Memory) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    if is_bfloat16(field) && *array.data_type() == DataType::UInt16 {
        let bits = array.as_primitive::<UInt16Type>().value(row);
        return Ok(Array::scalar(half::bf16::from_bits(bits)).into());
    }
    if let Some(array) = tensor(field, array, row, memory) {
        return Ok(array.into());
    }
    with_primitive!(array, numbers => Ok(Array::scalar(numbers.value(row)).into()), _ => other(field, array, row, memory))
}

fn other(field: &Field, array: &dyn arrow_array::Array, row: usize, memory: Memory) -> Result<Value> {
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Array::bool(array.as_boolean().value(row)).into(),
        DataType::Utf8 => text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => text(array.as_string_view().value(row)),
        DataType::Binary => binary(array.as_binary::<i32>(), row, memory),
        DataType::LargeBinary => binary(array.as_binary::<i64>(), row, memory),
        DataType::BinaryView => bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().value(row)),
        DataType::Decimal32(..) => array.as_primitive::<Decimal32Type>().value_as_string(row).as_str().into(),
        DataType::Decimal64(..) => array.as_primitive::<Decimal64Type>().value_as_string(row).as_str().into(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row).as_str().into(),
        DataType::Decimal256(..) => array.as_primitive::<Decimal256Type>().value_as_string(row).as_str().into(),
        DataType::List(item) => list(item, array.as_list::<i32>().value(row), memory)?,
        DataType::LargeList(item) => list(item, array.as_list::<i64>().value(row), memory)?,
        DataType::FixedSizeList(item, _) => list(item, array.as_fixed_size_list().value(row), memory)?,
        DataType::Map(entry, _) => list(entry, Arc::new(array.as_map().value(row)), memory)?,
        DataType::Struct(fields) => {
            let mut tree = Element::with_capacity(fields.len());
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                tree.insert(field.name(), value(field, column, row, memory)?);
            }
            tree.into()
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = match value(field, dictionary.keys(), row, memory)? {
                Value::Array(key) => key.as_i64().and_then(|key| usize::try_from(key).ok()),
                _ => None,
            };
            let key = key.filter(|&key| key < dictionary.values().len());
            let key = key.ok_or_else(|| Error::data("a dictionary key has no value"))?;
            value(field, dictionary.values(), key, memory)?
        }
        other => return Err(Error::unsupported(format!("a column of type {other}"))),
    })
}

/// Copies a text and replaces invalid UTF-8: another process may have changed a mapped file after its check.
pub(super) fn text(text: &str) -> Value {
    let text = Text::from(text);
    match simdutf8::basic::from_utf8(text.as_bytes()) {
        Ok(_) => Value::Str(text),
        Err(_) => String::from_utf8_lossy(text.as_bytes()).as_ref().into(),
    }
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(Buffer::copy_from(bytes))
}

fn binary<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>, row: usize, memory: Memory) -> Value {
    let begin = array.value_offsets()[row].as_usize();
    let length = array.value(row).len();
    Value::Bytes(memory.of(&array.values().slice_with_length(begin, length)))
}

/// Returns the items of a list: as an array if they are non-null numbers or fixed-size lists of such, else as a list.
fn list(item: &Field, items: ArrayRef, memory: Memory) -> Result<Value> {
    let mut shape = vec![items.len()];
    let (mut field, mut inner) = (item, items.clone());
    while let DataType::FixedSizeList(item, size) = field.data_type()
        && inner.null_count() == 0
    {
        shape.push(usize::try_from(*size).map_err(|_| Error::data(format!("lists of {size} items")))?);
        (field, inner) = (item, inner.as_fixed_size_list().values().clone());
    }
    if inner.null_count() == 0
        && let Some((dtype, data)) = numbers(field, &inner, memory)
    {
        return Array::new(dtype, &shape, data).map(Value::Array);
    }
    (0..items.len()).map(|row| value(item, &items, row, memory)).collect::<Result<_>>().map(Value::List)
}

/// Returns non-null numbers or booleans as the bytes of an array.
pub(super) fn numbers(field: &Field, array: &ArrayRef, memory: Memory) -> Option<(DType, Buffer)> {
    let (dtype, bytes) = plain(field, array)?;
    // `plain` already unpacked booleans into a new buffer, so a second copy is unnecessary.
    let memory = if dtype == DType::Bool { Memory::Viewed } else { memory };
    Some((dtype, memory.of(&bytes)))
}

/// Returns numbers as stored by Arrow; booleans are unpacked to a byte each.
pub(super) fn plain(field: &Field, array: &ArrayRef) -> Option<(DType, arrow_buffer::Buffer)> {
    if *array.data_type() == DataType::Boolean {
        let truths: Vec<u8> = array.as_boolean().values().iter().map(u8::from).collect();
        return Some((DType::Bool, arrow_buffer::Buffer::from_vec(truths)));
    }
    let (dtype, bytes) = with_primitive!(array, numbers => whole(numbers), _ => return None);
    let dtype = if dtype == DType::U16 && is_bfloat16(field) { DType::BF16 } else { dtype };
    Some((dtype, bytes))
}

fn whole<T: ArrowPrimitiveType<Native: Scalar>>(numbers: &PrimitiveArray<T>) -> (DType, arrow_buffer::Buffer) {
    (T::Native::DTYPE, numbers.values().inner().clone())
}
