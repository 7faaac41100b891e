//! Column names: checks, and the message for a missing column.

use std::ops::RangeFull;

use crate::element::Name;
use crate::error::{Error, Result};

/// Columns to read: a list of names, or `..` for all columns.
///
/// The columns are known before files are opened, so a column whose type cannot be read is no error if it is left out.
pub trait ColumnNames {
    /// Returns the names, or `None` for all columns.
    #[doc(hidden)]
    fn names(self) -> Option<Vec<Name>>;
}

impl ColumnNames for RangeFull {
    fn names(self) -> Option<Vec<Name>> {
        None
    }
}

impl<S: AsRef<str>> ColumnNames for &[S] {
    fn names(self) -> Option<Vec<Name>> {
        Some(to_names(self))
    }
}

impl<S: AsRef<str>> ColumnNames for Vec<S> {
    fn names(self) -> Option<Vec<Name>> {
        Some(to_names(self))
    }
}

impl<S: AsRef<str>, const N: usize> ColumnNames for [S; N] {
    fn names(self) -> Option<Vec<Name>> {
        Some(to_names(self))
    }
}

/// Returns the names of columns.
pub(crate) fn to_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Vec<Name> {
    names.into_iter().map(|name| Name::new(name.as_ref())).collect()
}

/// Returns the name in `names` with the smallest edit distance to `name`, if that distance is small.
pub(crate) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = 1 + name.chars().count() / 3;
    let measured = names.into_iter().map(|other| (distance(&name.to_lowercase(), &other.to_lowercase()), other));
    measured.filter(|&(d, _)| d <= near).min_by_key(|&(d, _)| d).map(|(_, other)| other)
}

/// Returns the message for a missing column `name`: the nearest name, or the existing columns.
pub(crate) fn instead<'a>(name: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    const SHOWN: usize = 20;
    if let Some(near) = nearest(name, names.clone()) {
        return format!("no column {name:?}; the nearest name is {near:?}");
    }
    let all: Vec<&str> = names.into_iter().collect();
    let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    match all.is_empty() {
        true => format!("no column {name:?}; there are no columns"),
        false => format!("no column {name:?}; there are {}{more}", all[..all.len().min(SHOWN)].join(", ")),
    }
}

/// Checks that at least one column is chosen, and no column twice.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if the list is empty or repeats a column.
pub(crate) fn check_choice(columns: &[Name]) -> Result<()> {
    if columns.is_empty() {
        return Err(Error::config("the list of columns is empty").help("leave it out to read all columns"));
    }
    match columns.iter().enumerate().find(|(i, column)| columns[..*i].contains(column)) {
        Some((i, name)) => Err(Error::config(format!("column {i} is {name:?} again"))),
        None => Ok(()),
    }
}

/// Returns the Levenshtein distance between `a` and `b`: the number of insertions, deletions and replacements. Holds
/// one row of the table at a time.
fn distance(a: &str, b: &str) -> usize {
    // A long name is rarely a misspelling. The limit also bounds the work for names from a damaged file.
    const LONGEST: usize = 64;
    let b: Vec<char> = b.chars().take(LONGEST).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(LONGEST).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, d) in
            [("", "", 0), ("text", "text", 0), ("kitten", "sitting", 3), ("abc", "", 3), ("tetx", "text", 2)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (d, d), "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_is_named_or_all_are() {
        assert_eq!(instead("Tetx", ["id", "text"]), "no column \"Tetx\"; the nearest name is \"text\"");
        assert_eq!(instead("content", ["id", "text"]), "no column \"content\"; there are id, text");
        assert_eq!(instead("a", []), "no column \"a\"; there are no columns");
    }
}
