//! The manifest: what a folder of shards says of itself.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::compression::Compression;
use super::format::SinkFormat;
use super::schema::Schema;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
#[cfg(feature = "cli")]
use crate::source::{TokenLayout, TokenType};
use crate::store;

/// The version of the format of manifests that this crate writes.
pub const FORMAT: u32 = 1;
/// The name of the file.
pub const MANIFEST: &str = store::MANIFEST;

/// `manifest.json`: which shards there are, what is in them, and where the pipeline was behind each.
///
/// It is replaced whole after every shard. A shard that it does not list does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this format: [`FORMAT`].
    pub gristmill_manifest: u32,
    /// The crate that began the folder.
    pub crate_version: String,
    /// The format of the shards.
    pub format: SinkFormat,
    /// Their compression.
    pub compression: Compression,
    /// Options that decide where shards end and what is in them, by name.
    pub options: serde_json::Map<String, Json>,
    /// The columns of all shards, in formats that have columns, as soon as they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Whether the columns are those of so few records that a resume looks at more. The records lie beside the shards until then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// The pipeline whose elements they are, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Origin>,
    /// Whether there is nothing to come.
    pub complete: bool,
    /// Records of all shards.
    pub records: u64,
    /// The shards in order.
    pub shards: Vec<ShardEntry>,
    /// Files beside the shards that the format has once for all of them; there when it is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEntry>,
}

/// The pipeline that elements came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Its hash.
    pub fingerprint: String,
    /// Its stages and their parameters.
    pub stages: Vec<String>,
}

/// A shard of a [`Manifest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// Its files: one, unless the format has several.
    pub files: Vec<FileEntry>,
    /// The number of its first record.
    pub first_record: u64,
    /// Records in it.
    pub records: u64,
    /// Bytes of the values in its records, before they were encoded.
    pub raw_bytes: u64,
    /// The state of the pipeline behind its last record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
    /// Facts that the format keeps of it for a file beside the shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Json>,
}

/// A file of a [`Manifest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// In the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its XXH3 hash of 128 bits, in hexadecimal.
    pub xxh3: String,
}

impl Manifest {
    /// Reads one.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if it is none, or of another version.
    pub fn from_json(json: &str) -> Result<Self> {
        let wrong = |e: serde_json::Error| Error::state(format!("not a manifest of gristmill's: {e}"));
        let value: Json = serde_json::from_str(json).map_err(wrong)?;
        match value.get("gristmill_manifest").and_then(Json::as_u64) {
            Some(version) if version == u64::from(FORMAT) => serde_json::from_value(value).map_err(wrong),
            Some(version) => Err(Error::state(format!("manifest format {version}, and this gristmill reads {FORMAT}"))
                .help("use the version of gristmill that wrote it")),
            None => Err(Error::state("not a manifest of gristmill's: no field \"gristmill_manifest\"")),
        }
    }

    /// It as JSON, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and JSON values serialise") + "\n"
    }

    /// The layout of token files without a header.
    #[cfg(feature = "cli")]
    pub(crate) fn layout(&self) -> TokenLayout {
        let token = match self.options.get("token_type").and_then(Json::as_str) {
            Some("uint32") => TokenType::U32,
            _ => TokenType::U16,
        };
        let is_bare = self.options.get("bare").and_then(Json::as_bool) == Some(true);
        if is_bare { TokenLayout::Bare(token) } else { TokenLayout::Detect }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().fold(0, |bytes, file| bytes.saturating_add(file.bytes))
    }

    /// All files, those of shards first.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.shards.iter().flat_map(|shard| &shard.files).chain(&self.files)
    }

    /// The state of the pipeline behind the last shard, if a pipeline it was.
    pub(super) fn checkpoint(&self) -> Option<Checkpoint> {
        let (origin, last) = (self.pipeline.as_ref()?, self.shards.last()?);
        Some(Checkpoint {
            gristmill_checkpoint: crate::checkpoint::FORMAT,
            crate_version: self.crate_version.clone(),
            fingerprint: origin.fingerprint.clone(),
            pipeline: origin.stages.clone(),
            delivered: self.records,
            state: last.state.clone()?,
            accepted_changes: Vec::new(),
        })
    }

    /// Checks that it may be continued by what `new` begins.
    pub(super) fn check(&self, new: &Self) -> Result<()> {
        let differs = |what: &str, was: String, is: String| {
            Error::state(format!("the folder was begun with {what} {was}, and this is {is}"))
                .help("continue with the options that it was begun with, or write to another folder")
        };
        if self.format != new.format {
            return Err(differs("format", self.format.to_string(), new.format.to_string()));
        }
        if self.compression != new.compression {
            return Err(differs("compression", self.compression.to_string(), new.compression.to_string()));
        }
        for name in new.options.keys().chain(self.options.keys()) {
            let of = |manifest: &'_ Self| manifest.options.get(name).cloned().unwrap_or_default();
            let (was, is) = (of(self), of(new));
            if was != is {
                return Err(differs(name, was.to_string(), is.to_string()));
            }
        }
        Ok(())
    }
}
