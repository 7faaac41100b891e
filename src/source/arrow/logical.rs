//! Column types that elements do not have: times, decimals, and bytes and arrays of fixed size.
//!
//! An element holds a number, a text, bytes or an array instead. A column declared with such a type is written with it.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
};
use arrow_array::{Array as _, ArrayRef, FixedSizeBinaryArray, PrimitiveArray, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, TimeUnit};

use super::build::Refused;
use super::common::number;
use super::failed;
use super::kind::{Kind, item, number_field};
use crate::element::DType;
use crate::error::{Error, Result};

/// Returns the kind in which elements hold values of a type that they do not have; `None` for all other types.
pub(crate) fn base(data_type: &DataType) -> Option<Kind> {
    use DataType::*;
    Some(match data_type {
        Timestamp(..) | Date64 | Time64(_) | Duration(_) => Kind::Number(DType::I64),
        Date32 | Time32(_) => Kind::Number(DType::I32),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => Kind::Text,
        FixedSizeBinary(_) => Kind::Bytes,
        FixedSizeList(..) => {
            let (dtype, sizes) = fixed(data_type)?;
            Kind::Array(dtype, sizes[1..].to_vec())
        }
        _ => return None,
    })
}

/// Returns the number type and the sizes of nested fixed-size lists, the outermost first; `None` for other types.
pub(crate) fn fixed(data_type: &DataType) -> Option<(DType, Vec<usize>)> {
    let DataType::FixedSizeList(item, size) = data_type else { return None };
    let size = usize::try_from(*size).ok().filter(|&size| size > 0)?;
    let (dtype, inner) = if let Some(dtype) = number(item) { (dtype, Vec::new()) } else { fixed(item.data_type())? };
    Some((dtype, [vec![size], inner].concat()))
}

/// Returns the type of nested fixed-size lists with these sizes.
pub(super) fn fixed_type(dtype: DType, sizes: &[usize]) -> Option<DataType> {
    let [size, inner @ ..] = sizes else { return None };
    let size = i32::try_from(*size).ok().filter(|&size| size > 0)?;
    let item = if inner.is_empty() { number_field("item", dtype, true) } else { item(dtype, inner, false).ok()? };
    Some(DataType::FixedSizeList(item.into(), size))
}

/// Returns the name of a type, as in Hugging Face's features and Arrow's Python package.
pub(crate) fn word(data_type: &DataType) -> String {
    use DataType::*;
    match data_type {
        Timestamp(unit, None) => format!("timestamp[{}]", short(*unit)),
        Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", short(*unit)),
        Date32 => "date32".to_owned(),
        Date64 => "date64".to_owned(),
        Time32(unit) => format!("time32[{}]", short(*unit)),
        Time64(unit) => format!("time64[{}]", short(*unit)),
        Duration(unit) => format!("duration[{}]", short(*unit)),
        Decimal32(digits, scale) => format!("decimal32({digits}, {scale})"),
        Decimal64(digits, scale) => format!("decimal64({digits}, {scale})"),
        Decimal128(digits, scale) => format!("decimal128({digits}, {scale})"),
        Decimal256(digits, scale) => format!("decimal256({digits}, {scale})"),
        FixedSizeBinary(size) => format!("fixed_size_binary[{size}]"),
        other => match fixed(other) {
            Some((dtype, sizes)) => format!("{dtype}{sizes:?}"),
            None => other.to_string(),
        },
    }
}

/// Parses the name of a type.
pub(crate) fn of_word(word: &str) -> Option<DataType> {
    use DataType::*;
    match word {
        "date32" => return Some(Date32),
        "date64" => return Some(Date64),
        _ => {}
    }
    if let Some((name, inner)) = word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        let (digits, scale) = inner.split_once(',')?;
        let (digits, scale) = (digits.trim().parse().ok()?, scale.trim().parse().ok()?);
        let (data_type, most) = match name {
            "decimal32" => (Decimal32(digits, scale), 9),
            "decimal64" => (Decimal64(digits, scale), 18),
            "decimal128" => (Decimal128(digits, scale), 38),
            "decimal256" => (Decimal256(digits, scale), 76),
            _ => return None,
        };
        return Some(data_type).filter(|_| (1..=most).contains(&digits) && i64::from(scale) <= i64::from(digits));
    }
    let (name, inner) = word.strip_suffix(']')?.split_once('[')?;
    let (first, zone) = inner.split_once(',').map_or((inner, None), |(first, zone)| (first, Some(zone.trim())));
    match (name, zone) {
        ("timestamp", zone) => {
            let zone = if let Some(zone) = zone { Some(zone.strip_prefix("tz=")?.into()) } else { None };
            Some(Timestamp(unit(first)?, zone))
        }
        ("time32", None) => unit(first).filter(|unit| *unit <= TimeUnit::Millisecond).map(Time32),
        ("time64", None) => unit(first).filter(|unit| *unit > TimeUnit::Millisecond).map(Time64),
        ("duration", None) => unit(first).map(Duration),
        ("fixed_size_binary", None) => first.parse().ok().filter(|&size| size >= 0).map(FixedSizeBinary),
        _ => {
            let sizes = inner.split(',').map(|size| size.trim().parse().ok()).collect::<Option<Vec<_>>>()?;
            fixed_type(DType::from_name(name)?, &sizes)
        }
    }
}

fn short(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

fn unit(word: &str) -> Option<TimeUnit> {
    use TimeUnit::*;
    [Second, Millisecond, Microsecond, Nanosecond].into_iter().find(|unit| short(*unit) == word)
}

/// Converts a column of values of [`base`] to a column of `to`.
///
/// # Errors
/// The row, and [`ErrorKind::Data`](crate::ErrorKind::Data), if `to` cannot hold a value.
pub(super) fn retyped(array: ArrayRef, to: &DataType) -> Result<ArrayRef, Refused> {
    use DataType::*;
    let whole = |error| (0, failed(error));
    match to {
        Decimal32(digits, scale) => decimals::<Decimal32Type>(&array, *digits, *scale),
        Decimal64(digits, scale) => decimals::<Decimal64Type>(&array, *digits, *scale),
        Decimal128(digits, scale) => decimals::<Decimal128Type>(&array, *digits, *scale),
        Decimal256(digits, scale) => decimals::<Decimal256Type>(&array, *digits, *scale),
        FixedSizeBinary(size) => {
            let bytes = array.as_binary::<i32>();
            let wanted = usize::try_from(*size).unwrap_or(0);
            if let Some(row) = bytes.iter().position(|bytes| bytes.is_some_and(|bytes| bytes.len() != wanted)) {
                return Err((row, unlike(&format!("{} bytes", bytes.value(row).len()), to)));
            }
            let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.iter(), *size);
            Ok(Arc::new(fixed.map_err(whole)?))
        }
        FixedSizeList(_, size) => lists(&array, usize::try_from(*size).unwrap_or(0), to),
        time => array.to_data().into_builder().data_type(time.clone()).build().map(make_array).map_err(whole),
    }
}

#[cold]
fn unlike(value: &str, to: &DataType) -> Error {
    Error::data(format!("{value}, but the column holds {}", word(to)))
}

/// Parses decimals.
fn decimals<T: DecimalType + ArrowPrimitiveType<Native: FromStr>>(
    array: &ArrayRef,
    digits: u8,
    scale: i8,
) -> Result<ArrayRef, Refused> {
    let to = T::TYPE_CONSTRUCTOR(digits, scale);
    let of = |(row, text): (usize, Option<&str>)| {
        let Some(text) = text else { return Ok(None) };
        let number = unscaled(text, scale).and_then(|digits| digits.parse::<T::Native>().ok());
        let number = number.filter(|&number| T::is_valid_decimal_precision(number, digits));
        number.map(Some).ok_or_else(|| (row, unlike(&format!("{text:?}"), &to)))
    };
    let numbers = array.as_string::<i32>().iter().enumerate().map(of).collect::<Result<PrimitiveArray<T>, _>>()?;
    Ok(Arc::new(numbers.with_precision_and_scale(digits, scale).map_err(|e| (0, failed(e)))?))
}

/// Returns a decimal's digits without the point, with `scale` digits after it; `None` if the text has more.
fn unscaled(text: &str, scale: i8) -> Option<String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match usize::try_from(scale) {
        Ok(scale) => Some(format!("{whole}{part}{}", "0".repeat(scale.checked_sub(part.len())?))),
        Err(_) if whole == "0" && part.is_empty() => Some(whole.to_owned()),
        Err(_) => {
            let zeros = "0".repeat(usize::from(scale.unsigned_abs()));
            whole.strip_suffix(&zeros).filter(|_| part.is_empty()).map(str::to_owned)
        }
    }
}

/// Converts lists of numbers to lists of `size` items.
fn lists(array: &ArrayRef, size: usize, to: &DataType) -> Result<ArrayRef, Refused> {
    let list = array.as_list::<i32>();
    let values = list.values().to_data();
    let mut fixed = MutableArrayData::new(vec![&values], true, list.len().saturating_mul(size));
    for (row, ends) in list.value_offsets().windows(2).enumerate() {
        let [begin, end] = [ends[0], ends[1]].map(|end| end as usize);
        if list.is_null(row) {
            fixed.try_extend_nulls(size).map_err(|e| (row, failed(e)))?;
        } else if end - begin == size {
            fixed.try_extend(0, begin, end).map_err(|e| (row, failed(e)))?;
        } else {
            return Err((row, unlike(&format!("{} items", end - begin), to)));
        }
    }
    let data = arrow_data::ArrayData::builder(to.clone()).len(list.len()).nulls(list.nulls().cloned());
    let data = data.add_child_data(fixed.freeze()).build();
    data.map(make_array).map_err(|e| (0, failed(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        use DataType::*;
        let types = [
            Timestamp(TimeUnit::Microsecond, None),
            Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into())),
            Date32,
            Date64,
            Time32(TimeUnit::Millisecond),
            Time64(TimeUnit::Nanosecond),
            Duration(TimeUnit::Second),
            Decimal128(10, -2),
            Decimal256(76, 5),
            FixedSizeBinary(16),
            fixed_type(DType::F32, &[2, 3]).unwrap(),
        ];
        for data_type in types {
            assert_eq!(of_word(&word(&data_type)), Some(data_type.clone()), "{}", word(&data_type));
            assert!(base(&data_type).is_some());
        }
        let wrong =
            ["time32[us]", "time64[s]", "decimal32(10, 2)", "decimal128(3, 4)", "timestamp[us, UTC]", "x[3]", "f"];
        assert!(wrong.iter().all(|word| of_word(word).is_none()));
    }

    #[test]
    fn decimals_are_read_of_their_text() {
        let digits = |text, scale| unscaled(text, scale);
        assert_eq!(digits("-12.50", 2).as_deref(), Some("-1250"));
        assert_eq!(digits("7", 2).as_deref(), Some("700"));
        assert_eq!(digits("1200", -2).as_deref(), Some("12"));
        assert_eq!((digits("1.234", 2), digits("1.x", 2), digits("120", -2)), (None, None, None));
    }
}
