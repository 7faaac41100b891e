//! Conversion of elements to the columns of a record batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, ListArray, NullArray, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer as ArrowBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;

use super::failed;
use super::kind::{Kind, all, different, item, within};
use super::logical::{base, retyped, word};
use super::types::data_type;
use crate::element::{DType, Element, Name, Value};
use crate::error::{Error, Result};

/// Value of a field that a row does not have.
static NOTHING: Value = Value::Null;

/// Row and error of a value that does not fit its column.
pub(super) type Refused = (usize, Error);

/// Converts rows to a batch of these columns.
///
/// # Errors
/// The row, and [`ErrorKind::Data`](crate::ErrorKind::Data), if a column cannot hold a value.
pub(super) fn record_batch(
    schema: &SchemaRef,
    fields: &[(Name, Kind)],
    rows: &[Element],
) -> Result<RecordBatch, Refused> {
    let rows: Vec<_> = rows.iter().map(Some).collect();
    let columns = columns(fields, &rows)?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|e| (0, failed(e)))
}

/// Converts the fields of trees, some of which may be null.
fn columns(fields: &[(Name, Kind)], trees: &[Option<&Element>]) -> Result<Vec<ArrayRef>, Refused> {
    let mut found = vec![0; trees.len()];
    let mut columns = Vec::with_capacity(fields.len());
    for (at, (name, kind)) in fields.iter().enumerate() {
        let values: Vec<&Value> =
            trees.iter().map(|tree| tree.map_or(&NOTHING, |tree| field(tree, at, name))).collect();
        // A missing field is recognized by the address of its value.
        found.iter_mut().zip(&values).for_each(|(n, value)| *n += usize::from(!std::ptr::eq(*value, &NOTHING)));
        columns.push(column(kind, &values).map_err(|(row, e)| (row, within(e, name)))?);
    }
    for (row, (tree, found)) in trees.iter().zip(found).enumerate() {
        if let Some(tree) = tree.filter(|tree| tree.len() != found) {
            return Err((row, unknown(tree, fields)));
        }
    }
    Ok(columns)
}

/// Returns the field with this name, which is usually field number `at`.
fn field<'a>(tree: &'a Element, at: usize, name: &str) -> &'a Value {
    match tree.iter().nth(at) {
        Some((known, value)) if known == name => value,
        _ => tree.get(name).unwrap_or(&NOTHING),
    }
}

#[cold]
fn unknown(tree: &Element, fields: &[(Name, Kind)]) -> Error {
    let is_new = |name: &str| !fields.iter().any(|(known, _)| known == name);
    let name = tree.iter().map(|(name, _)| name).find(|name| is_new(name)).unwrap_or_default();
    Error::data(format!("column {name}: it was in none of the rows from which the columns were taken"))
        .help("declare it by a schema, or by an example that has all columns")
}

fn column(kind: &Kind, values: &[&Value]) -> Result<ArrayRef, Refused> {
    Ok(match kind {
        Kind::Null => {
            each(kind, values, |_| None::<()>)?;
            Arc::new(NullArray::new(values.len()))
        }
        Kind::Number(dtype) => numbers(kind, *dtype, values)?,
        Kind::Text => {
            let texts = each(kind, values, |value| if let Value::Str(text) = value { Some(&**text) } else { None })?;
            offsets(texts.iter().map(|text| text.map_or(0, str::len)))?;
            Arc::new(texts.into_iter().collect::<StringArray>())
        }
        Kind::Bytes => {
            let bytes = each(kind, values, |value| match value {
                Value::Bytes(bytes) => Some(bytes.as_bytes()),
                _ => None,
            })?;
            offsets(bytes.iter().map(|bytes| bytes.map_or(0, <[u8]>::len)))?;
            Arc::new(bytes.into_iter().collect::<BinaryArray>())
        }
        Kind::Array(dtype, inner) => arrays(kind, *dtype, inner, values)?,
        Kind::Empty(dtype) => arrays(kind, *dtype, &[], values)?,
        Kind::Logical(data_type) => {
            let base = base(data_type).ok_or_else(|| (0, Error::unsupported(word(data_type))))?;
            retyped(column(&base, values)?, data_type)?
        }
        Kind::List(items) if let Some(dtype) = times(items) => {
            let numbers = arrays(kind, dtype, &[], values)?;
            let (_, offsets, numbers, nulls) = numbers.as_list::<i32>().clone().into_parts();
            let item = items.field("item").map_err(|e| (0, e))?;
            let array = ListArray::try_new(Arc::new(item.clone()), offsets, retyped(numbers, item.data_type())?, nulls);
            Arc::new(array.map_err(|e| (0, failed(e)))?)
        }
        Kind::List(items) => {
            let lists = each(kind, values, |value| match value {
                Value::List(list) => Some(list.as_slice()),
                Value::Array(array) if array.shape() == [0] => Some(&[][..]),
                _ => None,
            })?;
            let offsets = offsets(lists.iter().map(|list| list.map_or(0, <[_]>::len)))?;
            let all: Vec<&Value> = lists.iter().flatten().copied().flatten().collect();
            let in_list = |(place, e)| (offsets.partition_point(|&begin| begin as usize <= place) - 1, e);
            let child = column(items, &all).map_err(in_list)?;
            list(items.field("item").map_err(|e| (0, e))?, offsets, child, validity(&lists))?
        }
        Kind::Tree(fields) => {
            let trees = each(kind, values, |value| if let Value::Tree(tree) = value { Some(tree) } else { None })?;
            let (children, nulls) = (columns(fields, &trees)?, validity(&trees));
            let fields = all(fields).map_err(|e| (0, e))?;
            let array = StructArray::try_new_with_length(fields, children, nulls, values.len());
            Arc::new(array.map_err(|e| (0, failed(e)))?)
        }
    })
}

/// Returns the number type of items that are times. Elements hold a list of times as an array of these numbers.
fn times(items: &Kind) -> Option<DType> {
    let Kind::Logical(data_type) = items else { return None };
    if let Some(Kind::Number(dtype)) = base(data_type) { Some(dtype) } else { None }
}

/// Applies `get` to every value; nulls become `None`.
fn each<'a, T>(
    kind: &Kind,
    values: &[&'a Value],
    get: impl Fn(&'a Value) -> Option<T>,
) -> Result<Vec<Option<T>>, Refused> {
    let one = |(row, &value): (usize, &&'a Value)| match (value, get(value)) {
        (Value::Null, _) => Ok(None),
        (_, Some(found)) => Ok(Some(found)),
        (other, None) => Err((row, refused(kind, other))),
    };
    values.iter().enumerate().map(one).collect()
}

#[cold]
fn refused(kind: &Kind, value: &Value) -> Error {
    Kind::of(value).map_or_else(|e| e, |other| different(kind, &other))
}

fn validity<T>(rows: &[Option<T>]) -> Option<NullBuffer> {
    rows.iter().any(Option::is_none).then(|| rows.iter().map(Option::is_some).collect())
}

fn numbers(kind: &Kind, dtype: DType, values: &[&Value]) -> Result<ArrayRef, Refused> {
    let scalars = each(kind, values, |value| match value {
        Value::Array(array) if array.shape().is_empty() && array.dtype() == dtype => Some(array.bytes()),
        _ => None,
    })?;
    let zero = [0; 8];
    let mut bytes = Vec::with_capacity(values.len() * dtype.size());
    scalars.iter().for_each(|scalar| bytes.extend_from_slice(scalar.unwrap_or(&zero[..dtype.size()])));
    flat(dtype, bytes, validity(&scalars))
}

/// Builds a column of scalars from their bytes.
pub(super) fn flat(dtype: DType, bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef, Refused> {
    if dtype == DType::Bool {
        let bits = BooleanBuffer::collect_bool(bytes.len(), |at| bytes[at] != 0);
        return Ok(Arc::new(BooleanArray::new(bits, nulls)));
    }
    let data = ArrayData::builder(data_type(dtype)).len(bytes.len() / dtype.size());
    // `bytes` may be less aligned than Arrow requires.
    let data = data.add_buffer(ArrowBuffer::from_vec(bytes)).nulls(nulls).align_buffers(true).build();
    data.map(make_array).map_err(|e| (0, failed(e)))
}

/// Converts arrays with inner dimensions `inner` and any first dimension. If `inner` is empty, also converts lists of
/// numbers and nulls.
fn arrays(kind: &Kind, dtype: DType, inner: &[usize], values: &[&Value]) -> Result<ArrayRef, Refused> {
    enum Row<'a> {
        Array(&'a crate::element::Array),
        List(&'a [Value]),
    }
    let rows = each(kind, values, |value| match value {
        Value::Array(array) if array.dtype() == dtype && array.shape().get(1..) == Some(inner) => {
            Some(Row::Array(array))
        }
        Value::List(items) if inner.is_empty() || items.is_empty() => Some(Row::List(items)),
        Value::Array(array) if array.shape() == [0] => Some(Row::List(&[])),
        _ => None,
    })?;
    let length = |row: &Option<Row<'_>>| match row {
        Some(Row::Array(array)) => array.shape()[0],
        Some(Row::List(items)) => items.len(),
        None => 0,
    };
    let offsets = offsets(rows.iter().map(length))?;
    let (mut bytes, mut nulls) = (Vec::new(), Vec::new());
    let zero = [0; 8];
    for (at, row) in rows.iter().enumerate() {
        match row {
            Some(Row::Array(array)) => bytes.extend_from_slice(array.bytes()),
            Some(Row::List(items)) => {
                for (place, item) in items.iter().enumerate() {
                    match item {
                        Value::Array(number) if number.shape().is_empty() && number.dtype() == dtype => {
                            bytes.extend_from_slice(number.bytes());
                        }
                        Value::Null => {
                            bytes.extend_from_slice(&zero[..dtype.size()]);
                            nulls.push(offsets[at] as usize + place);
                        }
                        other => return Err((at, refused(&Kind::Number(dtype), other))),
                    }
                }
            }
            None => {}
        }
    }
    let count = offsets.last() as usize;
    let nulls = (!nulls.is_empty()).then(|| {
        let mut valid = vec![true; count];
        nulls.iter().for_each(|&at| valid[at] = false);
        NullBuffer::from(valid)
    });
    let mut values = flat(dtype, bytes, nulls)?;
    for depth in (0..inner.len()).rev() {
        let rows = inner[..depth].iter().fold(count, |rows, &size| rows.saturating_mul(size));
        let of = item(dtype, &inner[depth..], false).map_err(|e| (0, e))?.data_type().clone();
        let data = ArrayData::builder(of).len(rows).add_child_data(values.to_data());
        values = data.build().map(make_array).map_err(|e| (0, failed(e)))?;
    }
    list(item(dtype, inner, true).map_err(|e| (0, e))?, offsets, values, validity(&rows))
}

fn list(
    item: arrow_schema::Field,
    offsets: OffsetBuffer<i32>,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Refused> {
    debug_assert_eq!(item.data_type(), values.data_type());
    let array = ListArray::try_new(Arc::new(item), offsets, values, nulls);
    array.map(|array| Arc::new(array) as ArrayRef).map_err(|e| (0, failed(e)))
}

/// Computes the offset of each row, and the end of the last row.
fn offsets(lengths: impl Iterator<Item = usize>) -> Result<OffsetBuffer<i32>, Refused> {
    let mut ends = vec![0];
    let mut end = 0usize;
    for (row, length) in lengths.enumerate() {
        end = end.saturating_add(length);
        let fits = i32::try_from(end);
        ends.push(fits.map_err(|_| {
            let text = format!("a record batch has {end} items or bytes, and Arrow allows at most {}", i32::MAX);
            (row, Error::data(text).help("write fewer rows into a batch, or smaller values"))
        })?);
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(ends)))
}
