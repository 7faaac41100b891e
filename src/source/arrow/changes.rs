//! Arrow types that elements do not have, and the types that a conversion of elements writes instead.

use arrow_schema::{DataType, Field, TimeUnit};

use super::logical::base;

/// Adds a line for each field whose type is not kept: its path, its type and the type written instead.
///
/// Formats that `have_types` keep the types of [`logical`](super::logical).
pub(super) fn changes(path: &str, field: &Field, have_types: bool, lines: &mut Vec<String>) {
    let data_type = field.data_type();
    let is_kept = have_types && base(data_type).is_some();
    if let Some(written) = written(data_type).filter(|_| !is_kept) {
        lines.push(format!("column {path}: {data_type} is written as {written}"));
    }
    match data_type {
        DataType::List(item) | DataType::LargeList(item) => match item.data_type() {
            // A fixed-size list inside of a list keeps its size.
            DataType::FixedSizeList(inner, _) => changes(path, inner, have_types, lines),
            _ => changes(path, item, have_types, lines),
        },
        DataType::FixedSizeList(item, _) => changes(path, item, have_types, lines),
        DataType::Struct(fields) => {
            fields.iter().for_each(|field| changes(&format!("{path}.{}", field.name()), field, have_types, lines));
        }
        _ => {}
    }
}

fn written(data_type: &DataType) -> Option<String> {
    use DataType::*;
    Some(match data_type {
        Timestamp(unit, _) => format!("int64, {} since 1970", plural(*unit)),
        Date32 => "int32, days since 1970".to_owned(),
        Date64 => "int64, milliseconds since 1970".to_owned(),
        Time32(unit) => format!("int32, {} since midnight", plural(*unit)),
        Time64(unit) => format!("int64, {} since midnight", plural(*unit)),
        Duration(unit) => format!("int64, {}", plural(*unit)),
        Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => "text".to_owned(),
        Dictionary(_, values) => written(values).unwrap_or_else(|| format!("{values}")),
        FixedSizeList(..) => "a list of any size".to_owned(),
        FixedSizeBinary(_) => "bytes of any size".to_owned(),
        Map(..) => "a list of structs".to_owned(),
        _ => return None,
    })
}

fn plural(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    }
}
