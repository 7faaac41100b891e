//! Arrow types that elements do not have, and the types that a conversion of elements writes instead.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

use super::columns::Columns;
use super::common::number;
use super::kind::Kind;
use super::logical::{base, fixed, fixed_type};
use super::tensors;
use crate::element::Name;

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

/// Returns the kind of a column that is written with the type it has in its files; `None` if there is no such kind.
pub(crate) fn kind(field: &Field) -> Option<Kind> {
    use DataType::*;
    if tensors::shape(field).is_some() {
        return None;
    }
    if let Some(dtype) = number(field) {
        return Some(Kind::Number(dtype));
    }
    let data_type = field.data_type();
    if base(data_type).is_some() {
        // Inner fields get the names that declared columns use.
        return match fixed(data_type) {
            Some((dtype, sizes)) => fixed_type(dtype, &sizes).map(Kind::Logical),
            None => Some(Kind::Logical(data_type.clone())),
        };
    }
    Some(match data_type {
        Null => Kind::Null,
        Utf8 | LargeUtf8 | Utf8View => Kind::Text,
        Binary | LargeBinary | BinaryView => Kind::Bytes,
        Dictionary(_, values) => kind(&Field::new("", (**values).clone(), true))?,
        List(item) | LargeList(item) | FixedSizeList(item, _) => match (number(item), fixed(item.data_type())) {
            (Some(dtype), _) => Kind::Array(dtype, Vec::new()),
            (None, Some((dtype, sizes))) => Kind::Array(dtype, sizes),
            (None, None) => Kind::List(kind(item)?.into()),
        },
        Map(entries, _) => Kind::List(kind(entries)?.into()),
        Struct(fields) => {
            let field = |field: &Arc<Field>| Some((Name::new(field.name()), kind(field)?));
            Kind::Tree(fields.iter().map(field).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Returns the types in a kind that elements do not have.
pub(crate) fn types_in(kind: &Kind) -> Vec<&DataType> {
    match kind {
        Kind::Logical(data_type) => vec![data_type],
        Kind::List(items) => types_in(items),
        Kind::Tree(fields) => fields.iter().flat_map(|(_, kind)| types_in(kind)).collect(),
        _ => Vec::new(),
    }
}

impl Columns {
    /// Returns the columns whose types elements lack and the format `has`, and a line for each such type that is not
    /// kept.
    pub(crate) fn types(&self, has: impl Fn(&DataType) -> bool) -> (Vec<(Name, Kind)>, Vec<String>) {
        let (mut kept, mut lines) = (Vec::new(), Vec::new());
        let are_kept = |types: &[&DataType]| !types.is_empty() && types.iter().all(|data_type| has(data_type));
        for field in &self.fields {
            let kind = kind(field).filter(|kind| are_kept(&types_in(kind)));
            changes(field.name(), field, kind.is_some(), &mut lines);
            kept.extend(kind.map(|kind| (Name::new(field.name()), kind)));
        }
        (kept, lines)
    }
}
