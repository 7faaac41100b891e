//! Kinds of column values, and the Arrow fields that hold them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::logical::word;
use super::types::{BFLOAT16, EXTENSION, data_type};
use crate::element::{DType, Element, Name, Value};
use crate::error::{Error, Result};

/// Kind of the values of a column. Every value may also be null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Only nulls so far.
    Null,
    /// Scalar numbers.
    Number(DType),
    Text,
    Bytes,
    /// Arrays with these inner dimensions; the first dimension may differ from row to row.
    Array(DType, Vec<usize>),
    /// Empty arrays, which JSON yields for every empty list. They fit in columns of arrays and of any lists.
    Empty(DType),
    /// Lists of values other than numbers.
    List(Box<Kind>),
    Tree(Vec<(Name, Kind)>),
    /// A type that elements do not have, from a declaration of columns: see [`logical`](super::logical).
    Logical(DataType),
}

impl Kind {
    pub(crate) fn of(value: &Value) -> Result<Self> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Array(array) => match array.shape() {
                [] => Self::Number(array.dtype()),
                [0] => Self::Empty(array.dtype()),
                [_, inner @ ..] => Self::Array(array.dtype(), inner.to_vec()),
            },
            Value::Str(_) => Self::Text,
            Value::Bytes(_) => Self::Bytes,
            Value::List(items) => {
                let items = items.iter().try_fold(Self::Null, |kind, item| kind.and(Self::of(item)?))?;
                match items {
                    Self::Number(dtype) => Self::Array(dtype, Vec::new()),
                    other => Self::List(other.into()),
                }
            }
            Value::Tree(tree) => Self::of_tree(tree)?,
        })
    }

    pub(crate) fn of_tree(tree: &Element) -> Result<Self> {
        let field = |(name, value): (&str, &Value)| {
            let kind = Self::of(value).map_err(|e| within(e, name))?;
            Ok((Name::new(name), kind))
        };
        tree.iter().map(field).collect::<Result<_>>().map(Self::Tree)
    }

    /// Returns the kind that holds values of both kinds.
    pub(crate) fn and(self, other: Self) -> Result<Self> {
        Ok(match (self, other) {
            (a, b) if a == b => a,
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (Self::Empty(_), kind @ (Self::Array(..) | Self::List(_) | Self::Empty(_)))
            | (kind @ (Self::Array(..) | Self::List(_)), Self::Empty(_)) => kind,
            // A list that is empty or holds only nulls has no item type, so any array fits.
            (Self::List(items), kind @ Self::Array(..)) | (kind @ Self::Array(..), Self::List(items))
                if *items == Self::Null =>
            {
                kind
            }
            (Self::List(a), Self::List(b)) => Self::List(a.and(*b)?.into()),
            (Self::Tree(a), Self::Tree(b)) => Self::Tree(merged(a, b)?),
            (a, b) => return Err(different(&a, &b)),
        })
    }

    /// Returns the field with this name.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a dimension that Arrow cannot hold.
    pub(crate) fn field(&self, name: &str) -> Result<Field> {
        let nested = |item: Field| DataType::List(Arc::new(item));
        Ok(match self {
            Self::Null => Field::new(name, DataType::Null, true),
            Self::Number(dtype) => number_field(name, *dtype, true),
            Self::Text => Field::new(name, DataType::Utf8, true),
            Self::Bytes => Field::new(name, DataType::Binary, true),
            Self::Array(dtype, inner) => Field::new(name, nested(item(*dtype, inner, true)?), true),
            Self::Empty(dtype) => Field::new(name, nested(item(*dtype, &[], true)?), true),
            Self::List(items) => Field::new(name, nested(items.field(ITEM)?), true),
            Self::Tree(fields) => Field::new(name, DataType::Struct(all(fields)?), true),
            Self::Logical(data_type) => Field::new(name, data_type.clone(), true),
        })
    }
}

/// Arrow's name for the field of a list's items.
const ITEM: &str = "item";

/// Returns the fields of a tree.
pub(super) fn all(fields: &[(Name, Kind)]) -> Result<Fields> {
    fields.iter().map(|(name, kind)| kind.field(name).map_err(|e| within(e, name))).collect()
}

/// Returns the field of the items of arrays with these inner dimensions.
pub(super) fn item(dtype: DType, inner: &[usize], nullable: bool) -> Result<Field> {
    let Some((&size, rest)) = inner.split_first() else { return Ok(number_field(ITEM, dtype, nullable)) };
    let size = i32::try_from(size);
    let size = size.map_err(|_| {
        Error::unsupported(format!("a dimension is {}, and Arrow allows at most {}", inner[0], i32::MAX))
    })?;
    let rest: FieldRef = item(dtype, rest, false)?.into();
    Ok(Field::new(ITEM, DataType::FixedSizeList(rest, size), nullable))
}

/// Returns a field for numbers of this type.
pub(super) fn number_field(name: &str, dtype: DType, nullable: bool) -> Field {
    let field = Field::new(name, data_type(dtype), nullable);
    match dtype {
        DType::BF16 => field.with_metadata(HashMap::from([(EXTENSION.to_owned(), BFLOAT16.to_owned())])),
        _ => field,
    }
}

/// Merges the fields of two trees; the fields of `a` come first.
fn merged(a: Vec<(Name, Kind)>, b: Vec<(Name, Kind)>) -> Result<Vec<(Name, Kind)>> {
    let mut fields = a;
    for (name, kind) in b {
        if let Some((_, known)) = fields.iter_mut().find(|(known, _)| *known == name) {
            let before = std::mem::replace(known, Kind::Null);
            *known = before.and(kind).map_err(|e| within(e, &name))?;
        } else {
            fields.push((name, kind))
        }
    }
    Ok(fields)
}

/// Adds the name of the column, or of the column that contains it, to an error.
pub(super) fn within(error: Error, name: &str) -> Error {
    let help = error.help_text().map(str::to_owned);
    let told = match error.message().split_once("column ") {
        Some(("", rest)) => format!("column {name}.{rest}"),
        _ => format!("column {name}: {}", error.message()),
    };
    let error = Error::new(error.kind(), told);
    help.into_iter().fold(error, Error::help)
}

/// Returns the error for a column that cannot hold both kinds.
#[cold]
pub(super) fn different(a: &Kind, b: &Kind) -> Error {
    let error = Error::data(format!("{b} where {a} came before"));
    match (a, b) {
        (Kind::Array(a, was), Kind::Array(b, is)) if a == b && was != is => {
            error.help("only the first dimension may differ from row to row: reshape, pad, or write bytes")
        }
        _ => error.help("convert them to one type by an earlier `map`, or declare the column by a schema"),
    }
}

display_as!(Kind, |self, f| {
    match self {
        Self::Null => f.write_str("null"),
        Self::Number(dtype) => write!(f, "a number of {dtype}"),
        Self::Text => f.write_str("text"),
        Self::Bytes => f.write_str("bytes"),
        Self::Empty(dtype) => write!(f, "an array of {dtype}[_]"),
        Self::Array(dtype, inner) => {
            write!(f, "an array of {dtype}[_")?;
            inner.iter().try_for_each(|size| write!(f, ", {size}"))?;
            f.write_str("]")
        }
        Self::List(items) => write!(f, "a list of {items}"),
        Self::Tree(_) => f.write_str("a tree"),
        Self::Logical(data_type) => f.write_str(&word(data_type)),
    }
});
