//! Batches as record batches.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, ListArray, NullArray, RecordBatch, StringArray, StructArray, make_array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use bytes::Bytes;

use crate::element::{Array, Buffer, DType, Element, Value};
use crate::error::{Error, Result};
use crate::source::arrow::types::data_type;

/// The columns of a batch, whose values have one entry for every row.
///
/// Aligned numbers are viewed. Bools are copied, because Arrow packs eight into a byte. Arrays of more dimensions
/// become lists of fixed size. Text, bytes and lists of different lengths are copied.
pub(super) fn record_batch(batch: &Element) -> Result<RecordBatch> {
    let (fields, columns) = columns(batch)?;
    RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns).map_err(refused)
}

fn columns(batch: &Element) -> Result<(Fields, Vec<ArrayRef>)> {
    let mut fields = Vec::with_capacity(batch.len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.len());
    for (name, value) in batch.iter() {
        let column = column(value).map_err(|e| e.and(&format!(", in column {name:?}")))?;
        let len = columns.first().map_or(column.len(), |first| first.len());
        if column.len() != len {
            let (first, rows) = (fields.first().map_or("", |f: &Field| f.name()), column.len());
            let text = format!("column {name:?} has {rows} rows, and column {first:?} has {len}");
            return Err(
                Error::data(text).help("make batches first, by `.batch(…)`: a record batch has one entry per row")
            );
        }
        fields.push(Field::new(name, column.data_type().clone(), column.null_count() > 0));
        columns.push(column);
    }
    Ok((fields.into(), columns))
}

fn column(value: &Value) -> Result<ArrayRef> {
    match value {
        Value::Array(array) if !array.shape().is_empty() => numbers(array),
        Value::List(items) => list(items),
        Value::Tree(tree) => {
            let (fields, columns) = columns(tree)?;
            Ok(Arc::new(StructArray::try_new(fields, columns, None).map_err(refused)?))
        }
        other => Err(Error::data(format!("{} is no column: it has no rows", other.kind()))
            .help("make batches first, by `.batch(…)`: a record batch has one entry per row")),
    }
}

fn numbers(array: &Array) -> Result<ArrayRef> {
    let shape = array.shape();
    let mut column = if array.dtype() == DType::Bool {
        Arc::new(BooleanArray::from_iter(array.bytes().iter().map(|&byte| Some(byte != 0)))) as ArrayRef
    } else {
        if array.dtype() == DType::BF16 {
            return Err(Error::unsupported("Arrow has no numbers of type bfloat16"));
        }
        let data = ArrayData::builder(data_type(array.dtype())).len(array.size()).add_buffer(buffer(array));
        make_array(data.build().map_err(refused)?)
    };
    for at in (1..shape.len()).rev() {
        let size = i32::try_from(shape[at]);
        let size = size.map_err(|_| {
            Error::data(format!("a row has {} numbers, and Arrow allows at most {}", shape[at], i32::MAX))
        })?;
        let item = Arc::new(Field::new("item", column.data_type().clone(), false));
        let rows = shape[..at].iter().product();
        let data = ArrayData::builder(DataType::FixedSizeList(item, size)).len(rows).add_child_data(column.to_data());
        column = make_array(data.build().map_err(refused)?);
    }
    Ok(column)
}

/// Owner that keeps memory alive that Arrow views.
struct View(Buffer);

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn buffer(array: &Array) -> arrow_buffer::Buffer {
    let bytes = array.buffer();
    let aligned = bytes.as_bytes().as_ptr().align_offset(array.dtype().size()) == 0;
    let bytes = if aligned { bytes.clone() } else { Buffer::copy_from(bytes.as_bytes()) };
    arrow_buffer::Buffer::from(Bytes::from_owner(View(bytes)))
}

fn list(items: &[Value]) -> Result<ArrayRef> {
    match items.iter().find(|item| !matches!(item, Value::Null)) {
        None => Ok(Arc::new(NullArray::new(items.len()))),
        Some(Value::Str(_)) => Ok(Arc::new(
            each(items, |item| if let Value::Str(text) = item { Some(&**text) } else { None })?
                .into_iter()
                .collect::<StringArray>(),
        )),
        Some(Value::Bytes(_)) => Ok(Arc::new(
            each(items, |item| if let Value::Bytes(bytes) = item { Some(bytes.as_bytes()) } else { None })?
                .into_iter()
                .collect::<BinaryArray>(),
        )),
        Some(Value::Array(first)) => ragged(items, first.dtype()),
        Some(other) => Err(Error::unsupported(format!("a column of entries that are each a {}", other.kind()))),
    }
}

/// Every entry as what `get` finds in it; nulls as none.
fn each<'a, T>(items: &'a [Value], get: impl Fn(&'a Value) -> Option<T>) -> Result<Vec<Option<T>>> {
    let one = |item: &'a Value| match (item, get(item)) {
        (Value::Null, _) => Ok(None),
        (_, Some(found)) => Ok(Some(found)),
        (other, None) => Err(Error::data(format!("one entry of a column is a {}, and others are not", other.kind()))),
    };
    items.iter().map(one).collect()
}

/// Rows of numbers with different lengths.
fn ragged(items: &[Value], dtype: DType) -> Result<ArrayRef> {
    let rows = each(items, |item| match item {
        Value::Array(array) if array.dtype() == dtype && array.shape().len() == 1 => Some(array),
        _ => None,
    })?;
    let mut bytes = Vec::new();
    rows.iter().flatten().for_each(|row| bytes.extend_from_slice(row.bytes()));
    let lengths = rows.iter().map(|row| row.map_or(0, Array::size));
    let total = bytes.len() / dtype.size();
    if i32::try_from(total).is_err() {
        return Err(Error::data(format!(
            "a column of lists has {total} numbers, and Arrow allows at most {}",
            i32::MAX
        )));
    }
    let values = numbers(&Array::new(dtype, &[total], Buffer::copy_from(&bytes))?)?;
    let item = Arc::new(Field::new("item", values.data_type().clone(), false));
    let nulls = rows.iter().any(Option::is_none).then(|| rows.iter().map(Option::is_some).collect());
    let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets(lengths)));
    Ok(Arc::new(ListArray::try_new(item, offsets, values, nulls).map_err(refused)?))
}

/// Computes where each row begins, and the last ends. The sum fits, which the caller has checked.
fn offsets(lengths: impl Iterator<Item = usize>) -> impl Iterator<Item = i32> {
    let ends = lengths.scan(0, |end, len| {
        *end += len as i32;
        Some(*end)
    });
    std::iter::once(0).chain(ends)
}

fn refused(error: ArrowError) -> Error {
    Error::data(error.to_string())
}
