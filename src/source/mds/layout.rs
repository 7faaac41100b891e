//! JSON headers of shards, and `index.json`, formatted like Python's `json.dumps(…, sort_keys=True)`.
//!
//! Uncompressed shards and the index are therefore identical, byte for byte, to the files that streaming writes.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::encoding::Encoding;
use super::index::{FileInfo, VERSION};

/// A column of the output.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// Name of the encoding as given, and its parsed form.
    pub(super) encoding: (String, Encoding),
}

/// Header common to all shards. `raw_data`, `samples` and `zip_data` are set for the entry of a finished shard.
///
/// The fields are declared in alphabetical order, as in Python's output.
#[derive(Serialize)]
pub(super) struct Config<'a> {
    column_encodings: Vec<&'a str>,
    column_names: Vec<&'a str>,
    column_sizes: Vec<Option<u64>>,
    compression: Option<&'a str>,
    format: &'static str,
    hashes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_data: Option<FileInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) samples: Option<u64>,
    size_limit: Option<u64>,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zip_data: Option<Option<FileInfo>>,
}

impl<'a> Config<'a> {
    pub(super) fn new(
        columns: &'a [Column],
        compression: Option<&'a str>,
        hashes: &'a [String],
        size_limit: Option<u64>,
    ) -> Self {
        Self {
            column_encodings: columns.iter().map(|column| column.encoding.0.as_str()).collect(),
            column_names: columns.iter().map(|column| column.name.as_str()).collect(),
            column_sizes: columns.iter().map(|column| column.encoding.1.size()).collect(),
            compression,
            format: "mds",
            hashes,
            raw_data: None,
            samples: None,
            size_limit,
            version: VERSION,
            zip_data: None,
        }
    }

    pub(super) fn text(&self) -> Vec<u8> {
        python_json(self)
    }
}

/// Builds `index.json` from the entries of the shards.
pub(super) fn index(shards: &[Vec<u8>]) -> Vec<u8> {
    let mut text = b"{\"shards\": [".to_vec();
    text.extend_from_slice(&shards.join(b", ".as_slice()));
    text.extend_from_slice(format!("], \"version\": {VERSION}}}").as_bytes());
    text
}

fn python_json(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, Python));
    written.expect("names and numbers are written to memory");
    out
}

/// Writes a space after commas and colons, and only ASCII.
struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        for c in text.chars() {
            if c.is_ascii() && c != '\x7f' {
                out.write_all(&[c as u8])?;
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_pythons() {
        let value = serde_json::json!([{"a": [1, null], "é\u{1f600}\"\n": {}}]);
        let text = String::from_utf8(python_json(&value)).unwrap();
        assert_eq!(text, "[{\"a\": [1, null], \"\\u00e9\\ud83d\\ude00\\\"\\n\": {}}]");
    }
}
