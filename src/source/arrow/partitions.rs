//! Columns from the names of folders: `date=2024-01-01/part=3/0.parquet`, as written by Hive, Spark and DuckDB.

use std::path::{Component, Path};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{DataType, Field, FieldRef};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Error, Result};
use crate::place::{Location, unescaped};

/// Name of a folder that means null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Columns from the folders of files.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    pub(crate) fields: Vec<FieldRef>,
    /// Value of each field, per file.
    values: Vec<Vec<Option<String>>>,
}

impl Partitions {
    /// Reads the columns of `files`, each with the number of folders between it and the folder that was given.
    ///
    /// If `wanted` is `None`, those folders are read; if `true`, all folders of the path; if `false`, none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a path has two folders for a column.
    pub(crate) fn of(files: &[(Location, usize)], wanted: Option<bool>) -> Result<Self> {
        if wanted == Some(false) {
            return Ok(Self::default());
        }
        let mut names: Vec<String> = Vec::new();
        let mut all = Vec::with_capacity(files.len());
        for (file, below) in files {
            let path = file.as_ref();
            let pairs =
                pairs(path, if wanted == Some(true) { usize::MAX } else { *below }).map_err(|e| e.path(path))?;
            names.extend(
                pairs.iter().map(|(name, _)| name).filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>(),
            );
            all.push(pairs);
        }
        let value = |pairs: &[(String, Option<String>)], name: &String| {
            pairs.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.clone())
        };
        let values: Vec<Vec<_>> =
            all.iter().map(|pairs| names.iter().map(|name| value(pairs, name)).collect()).collect();
        let field = |(at, name): (usize, String)| {
            let mut known = values.iter().filter_map(|values| values[at].as_deref()).peekable();
            let is_whole = known.peek().is_some() && known.all(|value| value.parse::<i64>().is_ok());
            Arc::new(Field::new(name, if is_whole { DataType::Int64 } else { DataType::Utf8 }, true))
        };
        Ok(Self { fields: names.into_iter().enumerate().map(field).collect(), values })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name() == name)
    }

    /// Returns the column of a file, if its folders give a column of this name.
    pub(crate) fn column(&self, file: usize, name: &str, rows: usize) -> Option<(FieldRef, ArrayRef)> {
        let at = self.fields.iter().position(|field| field.name() == name)?;
        let (field, value) = (&self.fields[at], self.values.get(file)?.get(at)?.as_deref());
        let array: ArrayRef = if let DataType::Int64 = field.data_type() {
            let number = value.and_then(|value| value.parse().ok());
            Arc::new(std::iter::repeat_n(number, rows).collect::<Int64Array>())
        } else {
            Arc::new(std::iter::repeat_n(value, rows).collect::<StringArray>())
        };
        Some((field.clone(), array))
    }

    /// Returns text for a source's identity that distinguishes these columns from others; empty if there are none.
    pub(crate) fn params(&self) -> String {
        if self.fields.is_empty() {
            return String::new();
        }
        let mut hasher = Xxh3::new();
        for value in self.values.iter().flatten() {
            let text = value.as_deref().unwrap_or(NULL);
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let names: Vec<String> =
            self.fields.iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        format!(", folders=[{}], hash={:016x}", names.join(", "), hasher.digest())
    }
}

/// Returns the names and values of the `name=value` folders among the last `below` folders of a path.
fn pairs(path: &Path, below: usize) -> Result<Vec<(String, Option<String>)>> {
    let names = path.parent().into_iter().flat_map(Path::components).filter_map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let names: Vec<&str> = names.collect();
    let mut pairs: Vec<(String, Option<String>)> = Vec::new();
    for (name, value) in names[names.len().saturating_sub(below)..].iter().filter_map(|name| name.split_once('=')) {
        // Spark escapes characters that a file system may refuse.
        let [name, value] = [name, value].map(|text| unescaped(text).to_string_lossy().into_owned());
        if name.is_empty() {
            continue;
        }
        if pairs.iter().any(|(known, _)| *known == name) {
            return Err(Error::config(format!("two folders of the path give column {name:?}"))
                .help("set `hive_partitioning: false` to ignore columns in the names of folders"));
        }
        pairs.push((name, (value != NULL).then_some(value)));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[&str], wanted: Option<bool>) -> Result<Partitions> {
        let below = |path: &str| path.matches('=').count();
        Partitions::of(&files.iter().map(|path| (Location::from(*path), below(path))).collect::<Vec<_>>(), wanted)
    }

    #[test]
    fn folders_are_columns() {
        let files = ["a/d=2024-01-01/n=07/0", "a/d=x%2Fy/n=__HIVE_DEFAULT_PARTITION__/0", "a/=1/0"];
        let all = of(&files, None).unwrap();
        let types: Vec<_> = all.fields.iter().map(|field| (field.name().as_str(), field.data_type().clone())).collect();
        assert_eq!(types, [("d", DataType::Utf8), ("n", DataType::Int64)]);
        assert_eq!(all.values[1], [Some("x/y".to_owned()), None]);
        assert_eq!(all.values[2], [None, None]);
        let (_, column) = all.column(0, "n", 2).unwrap();
        assert_eq!(*column, *(Arc::new(Int64Array::from(vec![7, 7])) as ArrayRef));
        assert_ne!(all.params(), of(&["a/d=2024-01-02/n=07/0", files[1], files[2]], None).unwrap().params());
        assert!(of(&files, Some(false)).unwrap().params().is_empty());
        assert!(of(&["s3://b/n=1/n=2/0"], None).unwrap_err().to_string().contains("two folders"));
    }
}
