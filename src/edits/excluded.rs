//! Records that edits exclude.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::names::records_in;
use crate::declare::arguments::{Arguments, Kind, arguments, read};
use crate::declare::node::{Node, Tree};
use crate::declare::values::Decode;
use crate::error::{Error, Result};

/// Largest number of records that the text of an edit lists.
const MOST_LISTED: usize = 8;

/// The records that an edit excludes: record numbers by file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Excluded(BTreeMap<String, BTreeSet<u64>>);

impl Excluded {
    /// Returns true if there are no records.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the files, each with the numbers of its records.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &BTreeSet<u64>)> {
        self.0.iter().map(|(file, records)| (file.as_str(), records))
    }

    fn records(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files().flat_map(|(file, records)| records.iter().map(move |record| (file, *record)))
    }
}

impl FromIterator<(String, u64)> for Excluded {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(records: I) -> Self {
        let mut files = BTreeMap::<String, BTreeSet<u64>>::new();
        for (file, record) in records {
            files.entry(file).or_default().insert(record);
        }
        Self(files)
    }
}

/// The records, or their number and a digest if there are many.
impl fmt::Display for Excluded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.records().count();
        if count <= MOST_LISTED {
            let records: Vec<_> = self.records().map(|(file, record)| format!("{file} {record}")).collect();
            return f.write_str(&records.join(", "));
        }
        let mut digest = Xxh3::new();
        self.records().for_each(|(file, record)| digest.update(format!("{file} {record}\n").as_bytes()));
        write!(f, "{count} records (xxh3 {:016x})", digest.digest())
    }
}

arguments! {
    struct RecordArgs {
        /// File of the record: the path, or the end of the path. For a source without files, the name of the source.
        file: String,
        /// Number of the record in its file, from 0 on.
        record: u64,
    }
}

/// A record in a list.
struct Listed(String, u64);

impl Decode for Listed {
    const KIND: Kind = Kind::Section(&RecordArgs::ABOUT);

    fn decode(node: &Node) -> Result<Self> {
        let RecordArgs { file, record } = read(node)?;
        Ok(Self(file, record))
    }
}

impl Decode for Excluded {
    const KIND: Kind = Kind::Either(&[Kind::Path, Kind::List(&Listed::KIND)]);

    fn decode(node: &Node) -> Result<Self> {
        let Tree::Str(path) = &node.value else {
            return Ok(Vec::<Listed>::decode(node)?.into_iter().map(|Listed(file, record)| (file, record)).collect());
        };
        let text = std::fs::read_to_string(path).map_err(|e| node.error(Error::io(e, path)))?;
        let records = records_in(&text).map_err(|e| node.error(e.path(path)))?;
        if records.is_empty() {
            return Err(node.error(format!("{path} names no record")));
        }
        Ok(records.into_iter().map(|(file, record)| (file.to_string_lossy().into_owned(), record)).collect())
    }
}

/// The excluded records of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct ExcludedRecords {
    /// Stage ids of the borders, in order.
    pub(crate) borders: Vec<usize>,
    /// The first edit that excludes each record, among the edits that exclude records. A record is the stage id of its source,
    /// and its number in the source.
    pub(crate) records: HashMap<(usize, u64), usize>,
    /// True if stages after the borders may hold elements between two batches.
    pub(crate) is_held: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_records_are_a_number_and_a_digest() {
        let records = |count: u64| (0..count).rev().map(|record| ("a.jsonl".to_owned(), record)).collect::<Excluded>();
        assert_eq!(records(2).to_string(), "a.jsonl 0, a.jsonl 1");
        assert_eq!(records(9).to_string().split(" (xxh3 ").next(), Some("9 records"));
        assert_eq!(records(9).to_string().len(), "9 records (xxh3 0123456789abcdef)".len());
        let other: Excluded =
            records(8).records().chain([("a.jsonl", 9)]).map(|(file, record)| (file.to_owned(), record)).collect();
        assert_ne!(other.to_string(), records(9).to_string());
    }
}
