//! Conversion of a file's columns to the types that hold the column's values in all files.

use std::fmt::Display;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, Float64Array, GenericListArray, LargeBinaryArray, LargeListArray,
    ListArray, NullArray, OffsetSizeTrait, PrimitiveArray, StringArray, StructArray, make_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::build::flat;
use super::common::{number, same_values, scale, tick};
use super::failed;
use super::kind::{number_field, within};
use super::value::{Memory, plain, value};
use crate::element::{DType, Value, cast_number};
use crate::error::{Error, Result};

/// Converts a column of `from` to the values of `to`.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data), with the column, if `to` cannot hold a value.
pub(crate) fn widened(array: &ArrayRef, from: &Field, to: &Field) -> Result<(FieldRef, ArrayRef)> {
    if same_values(from, to) {
        return Ok((Arc::new(from.clone()), array.clone()));
    }
    let array = values(array, from, to).map_err(|e| within(e, from.name()))?;
    // Decimals are widened as text.
    let field = Field::new(to.name(), array.data_type().clone(), true).with_metadata(to.metadata().clone());
    Ok((field.into(), array))
}

fn values(array: &ArrayRef, from: &Field, to: &Field) -> Result<ArrayRef> {
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        return Ok(dictionary.with_values(values(dictionary.values(), from, to)?));
    }
    if let (Some(of), Some(dtype)) = (number(from), number(to))
        && scale(array.data_type()).is_none()
    {
        return numbers(array, of, dtype);
    }
    match to.data_type() {
        DataType::LargeBinary => bytes(array, from),
        DataType::Float64 => parsed(array, from),
        decimal if scale(decimal).is_some() => digits(array, from, decimal),
        DataType::Struct(fields) => tree(array, fields, to.data_type()),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            lists(array, item, to.data_type())
        }
        time => times(array, time),
    }
}

#[cold]
fn too_wide(value: &dyn Display, to: &dyn Display) -> Error {
    Error::data(format!("{value} is no value of {to}, which the column is with the other files"))
        .help("choose the other columns by `columns`, or read the files as two sources")
}

fn numbers(array: &ArrayRef, from: DType, to: DType) -> Result<ArrayRef> {
    let field = number_field("", from, true);
    let (_, bytes) = plain(&field, array).ok_or_else(|| unlike(array, &from))?;
    let mut widened = vec![0; array.len() * to.size()];
    let rows = bytes.chunks_exact(from.size()).zip(widened.chunks_exact_mut(to.size()));
    for (row, (number, out)) in rows.enumerate() {
        if !array.is_null(row) && cast_number(number, from, to, out).is_none() {
            return Err(too_wide(&value_text(&field, array, row)?, &to));
        }
    }
    flat(to, widened, array.nulls().cloned()).map_err(|(_, error)| error)
}

/// Returns the digits of a whole number or a decimal.
fn value_text(field: &Field, array: &ArrayRef, row: usize) -> Result<String> {
    Ok(match value(field, array, row, Memory::Copied)? {
        Value::Str(text) => text.to_string(),
        Value::Array(array) => match array.dtype().whole_reader() {
            Some(read) => read(array.bytes()).to_string(),
            None => format!("{array:?}"),
        },
        other => return Err(Error::data(format!("{} where a number is promised", other.kind()))),
    })
}

/// Returns decimals of `to`, as text.
fn digits(array: &ArrayRef, from: &Field, to: &DataType) -> Result<ArrayRef> {
    let (has, wants) = (scale(array.data_type()).unwrap_or(0), scale(to).unwrap_or(0));
    let mut rest = "0".repeat(usize::try_from(wants - has).unwrap_or(0));
    if has == 0 && !rest.is_empty() {
        rest.insert(0, '.');
    }
    let texts = each(array, |row| Ok(value_text(from, array, row)? + &rest))?;
    Ok(Arc::new(texts.into_iter().collect::<StringArray>()))
}

/// Converts decimals to floats.
fn parsed(array: &ArrayRef, from: &Field) -> Result<ArrayRef> {
    let floats = each(array, |row| {
        let text = value_text(from, array, row)?;
        text.parse::<f64>().map_err(|_| too_wide(&text, &DType::F64))
    })?;
    Ok(Arc::new(floats.into_iter().collect::<Float64Array>()))
}

/// Returns the results of `read` for all non-null rows, and `None` for null rows.
fn each<T>(array: &ArrayRef, read: impl Fn(usize) -> Result<T>) -> Result<Vec<Option<T>>> {
    (0..array.len()).map(|row| (!array.is_null(row)).then(|| read(row)).transpose()).collect()
}

/// Converts texts to their bytes.
fn bytes(array: &ArrayRef, from: &Field) -> Result<ArrayRef> {
    let bytes = each(array, |row| match value(from, array, row, Memory::Copied)? {
        Value::Str(text) => Ok(text.as_bytes().to_vec()),
        _ => Err(unlike(array, &DataType::Utf8)),
    })?;
    Ok(Arc::new(bytes.into_iter().collect::<LargeBinaryArray>()))
}

/// Converts dates, times and durations to the unit of `to`.
fn times(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let wrong = || unlike(array, to);
    let (from, unit) = (tick(array.data_type()).ok_or_else(wrong)?, tick(to).ok_or_else(wrong)?);
    let as_type = |array: &dyn arrow_array::Array, to: &DataType| {
        array.to_data().into_builder().data_type(to.clone()).build().map(make_array).map_err(failed)
    };
    let is_narrow = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Time32(_));
    let wide: PrimitiveArray<Int64Type> = match is_narrow(array.data_type()) {
        true => as_type(array, &DataType::Int32)?.as_primitive::<Int32Type>().unary(i64::from),
        false => as_type(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone(),
    };
    let factor = from / unit;
    let scaled =
        wide.try_unary::<_, Int64Type, _>(|time| time.checked_mul(factor).ok_or_else(|| too_wide(&time, to)))?;
    if is_narrow(to) {
        let narrow = |time| i32::try_from(time).map_err(|_| too_wide(&time, to));
        return as_type(&scaled.try_unary::<_, Int32Type, _>(narrow)?, to);
    }
    as_type(&scaled, to)
}

/// Converts structs to the fields that they have in all files.
fn tree(array: &ArrayRef, fields: &Fields, to: &DataType) -> Result<ArrayRef> {
    let from = array.as_struct_opt().ok_or_else(|| unlike(array, to))?;
    let (mut known, mut columns) = (Vec::new(), Vec::new());
    for to in fields {
        let (field, column) = match from.fields().find(to.name()) {
            Some((at, field)) => widened(from.column(at), field, to)?,
            None => (
                Arc::new(Field::new(to.name(), DataType::Null, true)),
                Arc::new(NullArray::new(from.len())) as ArrayRef,
            ),
        };
        known.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        columns.push(column);
    }
    let tree = StructArray::try_new_with_length(known.into(), columns, from.nulls().cloned(), from.len());
    Ok(Arc::new(tree.map_err(failed)?))
}

/// Converts lists to the items that they have in all files.
fn lists(array: &ArrayRef, item: &FieldRef, to: &DataType) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::List(_) => Arc::new(items::<i32>(array, item)?),
        DataType::LargeList(_) => Arc::new(items::<i64>(array, item)?),
        DataType::Map(entry, _) => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let (field, entries) = widened(&(Arc::new(entries) as ArrayRef), entry, item)?;
            Arc::new(ListArray::try_new(field, offsets, entries, nulls).map_err(failed)?)
        }
        DataType::FixedSizeList(..) => {
            let (from, size, values, nulls) = array.as_fixed_size_list().clone().into_parts();
            let (field, values) = widened(&values, &from, item)?;
            if matches!(to, DataType::FixedSizeList(..)) {
                return Ok(Arc::new(FixedSizeListArray::try_new(field, size, values, nulls).map_err(failed)?));
            }
            let offsets = OffsetBuffer::from_repeated_length(usize::try_from(size).unwrap_or(0), array.len());
            Arc::new(LargeListArray::try_new(field, offsets, values, nulls).map_err(failed)?)
        }
        _ => return Err(unlike(array, to)),
    })
}

fn items<O: OffsetSizeTrait>(array: &ArrayRef, to: &Field) -> Result<GenericListArray<O>> {
    let (from, offsets, values, nulls) = array.as_list::<O>().clone().into_parts();
    let (field, values) = widened(&values, &from, to)?;
    GenericListArray::try_new(field, offsets, values, nulls).map_err(failed)
}

/// Returns the error for an array whose type differs from its schema.
#[cold]
fn unlike(array: &ArrayRef, promised: &dyn Display) -> Error {
    Error::data(format!("an array of type {} where {promised} is promised", array.data_type()))
}
