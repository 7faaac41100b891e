//! Columns of files: the columns chosen from each file, and the common columns of all files.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, NullArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::common::{Conflict, common, same_values};
use super::partitions::Partitions;
use super::value::is_supported;
use super::widen::widened;
use crate::element::Name;
use crate::error::{Error, Result};
use crate::source::columns::instead;

/// Columns that are read from a file.
pub(crate) struct Chosen {
    /// Indices of the columns in the file.
    pub(crate) places: Vec<usize>,
    /// The columns, in this order.
    pub(crate) schema: SchemaRef,
    /// Requested names that the file has no column for.
    pub(crate) missing: Vec<Name>,
    /// All columns of the file.
    pub(crate) all: SchemaRef,
}

impl Chosen {
    /// Chooses the columns of these names, in order; all columns if `columns` is `None`. Leaves out columns from
    /// folders.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a column is named twice, or the list is empty;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the type of a column cannot be read.
    pub(crate) fn of(all: &SchemaRef, columns: Option<&[Name]>, partitions: &Partitions) -> Result<Self> {
        let (mut places, mut missing) = (Vec::new(), Vec::new());
        match columns {
            None => places.extend((0..all.fields().len()).filter(|&at| !partitions.has(all.field(at).name()))),
            Some([]) => {
                return Err(Error::config("the list of columns is empty").help("leave it out to read all columns"));
            }
            Some(columns) => {
                for column in columns.iter().filter(|column| !partitions.has(column)) {
                    match all.fields().find(column) {
                        Some((place, _)) => places.push(place),
                        None => missing.push(column.clone()),
                    }
                }
            }
        }
        let fields: Vec<FieldRef> = places.iter().map(|&place| all.fields()[place].clone()).collect();
        for (i, field) in fields.iter().enumerate() {
            if fields[..i].iter().any(|other| other.name() == field.name()) {
                return Err(Error::config(format!("column {:?} is named twice", field.name())));
            }
            if !is_supported(field.data_type()) {
                let text = format!("column {:?} is of type {}", field.name(), field.data_type());
                return Err(Error::unsupported(text)
                    .help("choose the other columns by `columns`; `gristmill convert` by `--columns`"));
            }
        }
        Ok(Self { places, schema: Arc::new(Schema::new(fields)), missing, all: all.clone() })
    }
}

/// Common columns of several files.
pub(crate) struct Columns {
    pub(super) fields: Vec<FieldRef>,
    pub(in crate::source) partitions: Partitions,
}

impl Columns {
    /// Merges the columns of files by name: a missing column is null in its file, and types that differ are widened.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a name that no file has.
    /// [`ErrorKind::Data`](crate::ErrorKind::Data), with two files and a column, if no type holds the values of both
    /// files.
    pub(crate) fn of<'a>(
        names: Option<&[Name]>,
        files: impl Iterator<Item = (&'a Path, &'a Chosen)> + Clone,
        partitions: Partitions,
    ) -> Result<Self> {
        let mut fields = unified(files)?;
        let is_wanted = |field: &&FieldRef| names.is_none_or(|all| all.iter().any(|name| name == field.name()));
        fields.extend(partitions.fields.iter().filter(is_wanted).cloned());
        // Columns keep the order of `names`, even if the first file lacks some of them.
        let is_of = |wanted: &Name, name: &str| {
            wanted.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        fields.sort_by_key(|field| names.and_then(|all| all.iter().position(|wanted| is_of(wanted, field.name()))));
        Ok(Self { fields, partitions })
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.fields.iter().map(|field| Name::new(field.name())).collect()
    }

    /// Describes the columns besides their names, as part of the source's identity.
    pub(crate) fn params(&self) -> String {
        self.partitions.params()
    }

    /// Returns the common columns for a batch of file `file`.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data), with the column, if its type cannot hold a value.
    pub(super) fn fit(&self, file: usize, batch: &RecordBatch) -> Result<Vec<(FieldRef, ArrayRef)>> {
        let fields = batch.schema_ref().fields();
        let column = |(at, to): (usize, &FieldRef)| {
            if let Some(column) = self.partitions.column(file, to.name(), batch.num_rows()) {
                return Ok(column);
            }
            let place = match fields.get(at) {
                Some(field) if field.name() == to.name() => Some((at, field)),
                _ => fields.find(to.name()),
            };
            Ok(match place {
                Some((at, field)) if same_values(field, to) => (field.clone(), batch.column(at).clone()),
                Some((at, field)) => widened(batch.column(at), field, to)?,
                None => {
                    let nothing = Field::new(to.name(), DataType::Null, true);
                    (nothing.into(), Arc::new(NullArray::new(batch.num_rows())) as ArrayRef)
                }
            })
        };
        self.fields.iter().enumerate().map(column).collect()
    }
}

/// Merges the columns of files; each column gets the type that holds its values in all files.
pub(crate) fn unified<'a>(files: impl Iterator<Item = (&'a Path, &'a Chosen)> + Clone) -> Result<Vec<FieldRef>> {
    if let Some((path, first)) = files.clone().next() {
        let is_nowhere = |name: &&Name| files.clone().all(|(_, other)| other.missing.contains(name));
        if let Some(name) = first.missing.iter().find(is_nowhere) {
            let names = first.all.fields().iter().map(|field| field.name().as_str());
            return Err(Error::config(instead(name, names)).path(path));
        }
    }
    let mut unified: Vec<(FieldRef, &Path)> = Vec::new();
    for (path, chosen) in files {
        for (at, field) in chosen.schema.fields().iter().enumerate() {
            // The column is usually at its index in the first file.
            let is_it = |(known, _): &(FieldRef, &Path)| known.name() == field.name();
            let place = if unified.get(at).is_some_and(is_it) { Some(at) } else { unified.iter().position(is_it) };
            let Some(place) = place else {
                unified.push((field.clone(), path));
                continue;
            };
            let (known, before) = &mut unified[place];
            let both = common(known, field).map_err(|conflict| differ(&conflict, (field, path), before))?;
            if known.data_type().is_null() {
                *before = path;
            }
            *known = both;
        }
    }
    Ok(unified.into_iter().map(|(field, _)| field).collect())
}

#[cold]
fn differ(conflict: &Conflict, (field, path): (&Field, &Path), before: &Path) -> Error {
    let name: Vec<&str> =
        std::iter::once(field.name().as_str()).chain(conflict.path.iter().map(String::as_str)).collect();
    let (name, before) = (name.join("."), before.display());
    let text = format!("column {name:?} is of type {}, in {before} it is {}", conflict.is, conflict.was);
    let help = "no type holds both: choose the other columns by `columns`, or read the files as two sources and make the column alike by a `map`";
    Error::data(text).help(help).path(path)
}

/// Returns the names of the columns of all these files and their folders, in order of first appearance.
pub(crate) fn all_names<'a>(schemas: impl Iterator<Item = &'a Schema>, partitions: &'a Partitions) -> Vec<String> {
    let mut names = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for field in schemas.flat_map(Schema::fields).chain(&partitions.fields) {
        if seen.insert(field.name()) {
            names.push(field.name().clone());
        }
    }
    names
}
