//! Which columns of a schema are read.

use std::path::Path;

use arrow_schema::{DataType, FieldRef, Schema};

use super::value::is_supported;
use crate::element::Name;
use crate::error::{Error, Result};
use crate::source::columns::instead;

/// Places of the columns of these names, in their order; of all columns without names.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is not there, is named twice, or none is named;
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a type that is not read.
pub(crate) fn choose(schema: &Schema, columns: Option<&[Name]>) -> Result<Vec<usize>> {
    let names = || schema.fields().iter().map(|f| f.name().as_str());
    let chosen = match columns {
        None => (0..schema.fields().len()).collect(),
        Some([]) => {
            return Err(Error::config("the list of columns is empty").help("leave it out to read all columns"));
        }
        Some(columns) => {
            let find = |c: &Name| names().position(|n| n == c).ok_or_else(|| Error::config(instead(c, names())));
            columns.iter().map(find).collect::<Result<Vec<_>>>()?
        }
    };
    for (i, &column) in chosen.iter().enumerate() {
        let field = schema.field(column);
        if chosen[..i].iter().any(|&other| schema.field(other).name() == field.name()) {
            return Err(Error::config(format!("column {:?} is named twice", field.name())));
        }
        if !is_supported(field.data_type()) {
            let text = format!("column {:?} is of type {}", field.name(), field.data_type());
            return Err(Error::unsupported(text).help("choose the other columns"));
        }
    }
    Ok(chosen)
}

/// Names of the columns at these places.
pub(crate) fn names(schema: &Schema, chosen: &[usize]) -> Vec<Name> {
    chosen.iter().map(|&column| Name::new(schema.field(column).name())).collect()
}

/// Part of a file that is read: its schema, and the places of columns.
pub(crate) type Chosen<'a> = (&'a Path, &'a Schema, &'a [usize]);

/// All files must have the chosen columns with the types of the first: elements are of one kind.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) that names two columns that differ.
pub(crate) fn same<'a>(mut files: impl Iterator<Item = Chosen<'a>>) -> Result<()> {
    let Some((path, schema, chosen)) = files.next() else { return Ok(()) };
    let (first, count) = (path, chosen.len());
    let mut known: Vec<_> = chosen.iter().map(|&column| (path, schema.field(column))).collect();
    for (path, schema, chosen) in files {
        for (before, &column) in known.iter_mut().zip(chosen) {
            let (field, (other, was)) = (schema.field(column), *before);
            if was.name() != field.name() || !agree(was.data_type(), field.data_type()) {
                let (name, is, before) = (field.name(), field.data_type(), was.data_type());
                let other = other.display();
                let text = format!("column {name:?} is of type {is}, in {other} column {:?} is {before}", was.name());
                return Err(Error::data(text).path(path));
            }
            if was.data_type().is_null() {
                *before = (path, field);
            }
        }
        if chosen.len() != count {
            let text = format!("{} columns, {} has {count}", chosen.len(), first.display());
            return Err(Error::data(text).path(path));
        }
    }
    Ok(())
}

/// Whether columns of these types have values of one kind. Where one file has nothing but nulls, its writer may not have known
/// what they would be in another.
fn agree(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Null, _) | (_, DataType::Null) => true,
        (DataType::List(a), DataType::List(b)) => agree(a.data_type(), b.data_type()),
        (DataType::Struct(a), DataType::Struct(b)) => {
            let fields = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && agree(a.data_type(), b.data_type());
            a.len() == b.len() && a.iter().zip(b).all(fields)
        }
        _ => a == b,
    }
}
