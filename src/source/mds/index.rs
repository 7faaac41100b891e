//! `index.json`: the list of shards and their contents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Supported version of the format.
pub(super) const VERSION: u64 = 2;
/// Name of the index file.
pub(super) const INDEX: &str = "index.json";

/// Content of the index file.
#[derive(Deserialize)]
pub(super) struct Index {
    version: u64,
    pub(super) shards: Vec<ShardInfo>,
}

/// Entry of one shard.
#[derive(Debug, Deserialize)]
pub(super) struct ShardInfo {
    version: u64,
    format: String,
    /// Shards of other formats may lack the three column fields.
    #[serde(default)]
    pub(super) column_names: Vec<String>,
    #[serde(default)]
    pub(super) column_encodings: Vec<String>,
    /// Size of a value in bytes, or `None` if sizes vary.
    #[serde(default)]
    pub(super) column_sizes: Vec<Option<u64>>,
    pub(super) compression: Option<String>,
    pub(super) samples: u64,
    pub(super) raw_data: FileInfo,
    pub(super) zip_data: Option<FileInfo>,
}

/// Entry of one file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct FileInfo {
    pub(super) basename: String,
    pub(super) bytes: u64,
    #[serde(default)]
    pub(super) hashes: BTreeMap<String, String>,
}

impl Index {
    /// Parses the index and checks it for impossible values.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) with the byte offset or the shard.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for another version, or for shards of other formats.
    pub(super) fn parse(json: &[u8]) -> Result<Self> {
        let index: Self = serde_json::from_slice(json).map_err(|e| {
            let text = e.to_string();
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            Error::data(format!("not an index of MDS: {message}")).offset(offset(json, &e))
        })?;
        check_version(index.version)?;
        for (at, shard) in index.shards.iter().enumerate() {
            shard.check().map_err(|e| e.of(&format!("shard {at}")).offset(0))?;
        }
        Ok(index)
    }
}

/// Returns the byte offset of an error's line and column.
fn offset(json: &[u8], error: &serde_json::Error) -> u64 {
    let before: usize =
        json.split_inclusive(|&b| b == b'\n').take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    (before + error.column().saturating_sub(1)).min(json.len()) as u64
}

fn check_version(version: u64) -> Result<()> {
    if version != VERSION {
        return Err(Error::unsupported(format!(
            "the format has version {version}, and only version {VERSION} is supported"
        )));
    }
    Ok(())
}

impl ShardInfo {
    fn check(&self) -> Result<()> {
        check_version(self.version)?;
        if self.format != "mds" {
            return Err(Error::unsupported(format!("has the format {:?}, and only \"mds\" is supported", self.format)));
        }
        let columns = self.column_names.len();
        if (self.column_encodings.len(), self.column_sizes.len()) != (columns, columns) {
            let (encodings, sizes) = (self.column_encodings.len(), self.column_sizes.len());
            return Err(Error::data(format!("{columns} names, {encodings} encodings and {sizes} sizes of columns")));
        }
        if self.raw_data.bytes > u64::from(u32::MAX) {
            return Err(Error::data(format!(
                "the file has {} bytes, and its offsets have 32 bits",
                self.raw_data.bytes
            )));
        }
        let table = self.samples.checked_add(2).and_then(|numbers| numbers.checked_mul(4));
        if table.is_none_or(|table| table > self.raw_data.bytes) {
            return Err(Error::data(format!("{} samples in {} bytes", self.samples, self.raw_data.bytes)));
        }
        for file in self.zip_data.iter().chain([&self.raw_data]) {
            file.check()?;
        }
        Ok(())
    }
}

impl FileInfo {
    /// Checks that the file name does not lead out of the folder.
    fn check(&self) -> Result<()> {
        use std::path::{Component, Path};
        let mut parts = Path::new(&self.basename).components().peekable();
        if parts.peek().is_none() || parts.any(|part| !matches!(part, Component::Normal(_))) {
            return Err(Error::data(format!("{:?} is not the name of a file in this folder", self.basename)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(shard: &str) -> String {
        format!("{{\"version\": 2, \"shards\": [{shard}]}}")
    }

    const GOOD: &str = r#"{"version": 2, "format": "mds", "column_names": ["a"], "column_encodings": ["str"], "column_sizes": [null],
        "compression": null, "samples": 3, "raw_data": {"basename": "sub/x.mds", "bytes": 20, "hashes": {}}, "zip_data": null}"#;

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(Index::parse(index(GOOD).as_bytes()).unwrap().shards[0].samples, 3);
        let error =
            |from: &str, to: &str| Index::parse(index(&GOOD.replace(from, to)).as_bytes()).map(drop).unwrap_err();
        assert!(error("\"samples\": 3", "\"samples\": 4").message().contains("shard 0: 4 samples in 20 bytes"));
        assert!(error("\"samples\": 3", "\"samples\": 18446744073709551615").message().contains("samples in 20"));
        assert!(error("[null]", "[]").message().contains("1 names, 1 encodings and 0 sizes"));
        for name in ["../x", "/etc/x", "", ".", "a/../../b"] {
            assert!(error("sub/x.mds", name).message().contains("is not the name of a file"), "{name}");
        }
        assert!(error("\"mds\"", "\"json\"").message().contains("has the format \"json\""));
        assert!(error("\"version\": 2", "\"version\": 3").message().contains("version 3"));
        assert!(error("20", "4294967296").message().contains("32 bits"));
        let cut = Index::parse(b"{\"version\": 2,\n\"sha").map(drop).unwrap_err().to_string();
        assert!(cut.starts_with("byte 18: not an index of MDS: EOF"), "{cut}");
    }
}
