//! The common type of a column in two files.
//!
//! Types are compared by the values that they become: text is text in each of Arrow's layouts. Numbers, times and
//! decimals are widened like `pyarrow.unify_schemas(…, promote_options="permissive")`. Struct fields are merged by
//! name.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};

use super::kind::number_field;
use super::tensors::shape;
use super::types::{data_type, is_bfloat16};
use crate::element::DType;

/// Two types without a common type, and the path of fields to them.
#[derive(Debug)]
pub(super) struct Conflict {
    pub(super) path: Vec<String>,
    pub(super) was: String,
    pub(super) is: String,
}

/// Returns true if values of field `from` are values of field `to` without a conversion.
pub(super) fn same_values(from: &Field, to: &Field) -> bool {
    use DataType::*;
    let (a, b) = (plain(from.data_type()), plain(to.data_type()));
    if a.is_null() {
        return true;
    }
    if is_bfloat16(from) != is_bfloat16(to) || shape(from) != shape(to) {
        return false;
    }
    match (a, b) {
        (List(a) | LargeList(a) | Map(a, _), List(b) | LargeList(b)) | (Map(a, _), Map(b, _)) => same_values(a, b),
        (FixedSizeList(a, size), FixedSizeList(b, other)) => size == other && same_values(a, b),
        (Struct(a), Struct(b)) => {
            let same = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && same_values(a, b);
            a.len() == b.len() && a.iter().zip(b).all(same)
        }
        (Timestamp(a, zone), Timestamp(b, other)) => a == b && zone.is_some() == other.is_some(),
        (a, b) if is_text(a) => is_text(b),
        (a, b) if is_bytes(a) => is_bytes(b),
        (a, b) => match (scale(a), scale(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        },
    }
}

/// Returns the field that holds the values of both fields.
pub(super) fn common(a: &FieldRef, b: &FieldRef) -> Result<FieldRef, Conflict> {
    use DataType::*;
    if same_values(b, a) {
        return Ok(a.clone());
    }
    if same_values(a, b) {
        return Ok(b.clone());
    }
    let conflict = || Conflict { path: Vec::new(), was: shown(a), is: shown(b) };
    if shape(a) != shape(b) {
        return Err(conflict());
    }
    let of = |data_type| Ok(Arc::new(Field::new(a.name(), data_type, true).with_metadata(a.metadata().clone())));
    if let (Some(x), Some(y)) = (number(a), number(b)) {
        return number_of_both(x, y).map(|dtype| number_field(a.name(), dtype, true).into()).ok_or_else(conflict);
    }
    match (plain(a.data_type()), plain(b.data_type())) {
        (FixedSizeList(x, size), FixedSizeList(y, other)) if size == other => of(FixedSizeList(common(x, y)?, *size)),
        (
            List(x) | LargeList(x) | FixedSizeList(x, _) | Map(x, _),
            List(y) | LargeList(y) | FixedSizeList(y, _) | Map(y, _),
        ) => of(LargeList(common(x, y)?)),
        (Struct(x), Struct(y)) => of(Struct(merged(x, y)?)),
        (x, y) if is_text(x) && is_bytes(y) || is_bytes(x) && is_text(y) => of(LargeBinary),
        (x, y) => match (decimals(a, x), decimals(b, y)) {
            (Some(x), Some(y)) => of(Decimal256(arrow_schema::DECIMAL256_MAX_PRECISION, x.max(y))),
            _ if scale(x).is_some() && is_float(b) || is_float(a) && scale(y).is_some() => of(Float64),
            _ => time_of_both(x, y).map_or_else(|| Err(conflict()), of),
        },
    }
}

/// Returns the type, or the type of the values for a dictionary.
pub(super) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        other => other,
    }
}

fn shown(field: &Field) -> String {
    let mut text = field.data_type().to_string();
    if is_bfloat16(field) {
        text = DType::BF16.to_string();
    }
    if let Some(shape) = shape(field) { format!("{text} of shape {shape:?}") } else { text }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Binary | LargeBinary | BinaryView | FixedSizeBinary(_))
}

/// Returns the number of digits after the point in the text of a decimal.
pub(super) fn scale(data_type: &DataType) -> Option<i8> {
    use DataType::*;
    match data_type {
        Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => Some(*scale.max(&0)),
        _ => None,
    }
}

/// Returns the scale of decimals that hold the values of a field, if they are decimals or whole numbers.
fn decimals(field: &Field, data_type: &DataType) -> Option<i8> {
    scale(data_type).or_else(|| number(field).filter(|dtype| is_whole(*dtype)).map(|_| 0))
}

/// Returns the number type of a field.
pub(super) fn number(field: &Field) -> Option<DType> {
    if is_bfloat16(field) {
        return Some(DType::BF16);
    }
    let data_type_of = plain(field.data_type());
    DType::ALL.into_iter().find(|&dtype| dtype != DType::BF16 && data_type(dtype) == *data_type_of)
}

fn is_whole(dtype: DType) -> bool {
    dtype.whole_reader().is_some()
}

fn is_float(field: &Field) -> bool {
    number(field).is_some_and(|dtype| dtype != DType::Bool && !is_whole(dtype))
}

/// Returns the narrowest number type for both; `int64` for `uint64` with a signed integer.
fn number_of_both(a: DType, b: DType) -> Option<DType> {
    use DType::*;
    let is_signed = |dtype| matches!(dtype, I8 | I16 | I32 | I64);
    Some(match (is_whole(a), is_whole(b)) {
        _ if a == b => a,
        _ if a == Bool || b == Bool => return None,
        (true, true) if is_signed(a) == is_signed(b) => {
            if a.size() > b.size() {
                a
            } else {
                b
            }
        }
        (true, true) => {
            let (signed, unsigned) = if is_signed(a) { (a, b) } else { (b, a) };
            match signed.size().max(2 * unsigned.size()) {
                2 => I16,
                4 => I32,
                _ => I64,
            }
        }
        (false, false) if a.size() == b.size() => F32,
        (false, false) => {
            if a.size() > b.size() {
                a
            } else {
                b
            }
        }
        (true, false) => float_of_both(a, b),
        (false, true) => float_of_both(b, a),
    })
}

/// Returns the float type for whole numbers and floats.
fn float_of_both(whole: DType, float: DType) -> DType {
    match whole.size() {
        1 => float,
        2 if float.size() <= 4 => DType::F32,
        _ => DType::F64,
    }
}

/// Returns the nanoseconds per unit.
fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Returns the nanoseconds per step of the integer that stores a date, a time or a duration.
pub(super) fn tick(data_type: &DataType) -> Option<i64> {
    use DataType::*;
    Some(match data_type {
        Date32 => 86_400 * nanoseconds(TimeUnit::Second),
        Date64 => nanoseconds(TimeUnit::Millisecond),
        Timestamp(unit, _) | Time32(unit) | Time64(unit) | Duration(unit) => nanoseconds(*unit),
        _ => return None,
    })
}

/// Returns the finer of two time types.
fn time_of_both(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    let is_alike = match (a, b) {
        (Timestamp(_, zone), Timestamp(_, other)) => zone.is_some() == other.is_some(),
        (Date32 | Date64, Date32 | Date64) | (Time32(_) | Time64(_), Time32(_) | Time64(_)) => true,
        (Duration(_), Duration(_)) => true,
        _ => false,
    };
    is_alike.then(|| if tick(a) < tick(b) { a } else { b }).cloned()
}

/// Merges the fields of two structs; the fields of `a` come first.
fn merged(a: &Fields, b: &Fields) -> Result<Fields, Conflict> {
    let mut fields: Vec<FieldRef> = a.iter().cloned().collect();
    for field in b {
        if let Some(known) = fields.iter_mut().find(|known| known.name() == field.name()) {
            *known = common(known, field).map_err(|mut conflict| {
                conflict.path.insert(0, field.name().clone());
                conflict
            })?;
        } else {
            fields.push(field.clone())
        }
    }
    Ok(fields.into())
}
