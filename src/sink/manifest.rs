//! The manifest: the description of a folder of shards.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::compression::Compression;
use super::format::SinkFormat;
use super::schema::Schema;
use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::source::{TokenLayout, TokenType};
use crate::store;

/// Version of the manifest format that this crate writes.
pub const FORMAT: u32 = 1;
/// File name of the manifest.
pub const MANIFEST: &str = store::MANIFEST;

/// `manifest.json`: the shards, their contents, and the state of the pipeline after each shard.
///
/// The whole manifest is replaced after every shard. A shard that is not listed is not part of the data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the manifest format: [`FORMAT`].
    pub gristmill_manifest: u32,
    /// Version of the crate that created the folder.
    pub crate_version: String,
    /// Format of the shards.
    pub format: SinkFormat,
    /// Compression of the shards.
    pub compression: Compression,
    /// Options that determine the ends and contents of shards, by name.
    pub options: serde_json::Map<String, Json>,
    /// Columns of all shards, in formats that have columns; `None` until they are settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// True if the columns come from too few records, so that a resume infers them from more. Until then, the records
    /// are kept beside the shards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// Pipeline that produced the elements; `None` if no pipeline did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Origin>,
    /// True if no more shards follow.
    pub complete: bool,
    /// Number of records in all shards.
    pub records: u64,
    /// Shards in order.
    pub shards: Vec<ShardEntry>,
    /// Additional files that the format has once for all shards; present if the data set is complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEntry>,
}

/// Pipeline that produced the elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Hash of the pipeline.
    pub fingerprint: String,
    /// Stages of the pipeline and their parameters.
    pub stages: Vec<String>,
}

/// A shard of a [`Manifest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// Files of the shard: a single file, unless the format has several.
    pub files: Vec<FileEntry>,
    /// Number of the shard's first record.
    pub first_record: u64,
    /// Number of records in the shard.
    pub records: u64,
    /// Bytes of the values in the shard's records, before encoding.
    pub raw_bytes: u64,
    /// State of the pipeline after the shard's last record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Json>,
    /// Data of the shard that the format keeps for a file beside the shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Json>,
}

/// A file of a [`Manifest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Name in the folder.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// 128-bit XXH3 hash, in hexadecimal.
    pub xxh3: String,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if `json` is not a manifest, or a manifest of another version.
    pub fn from_json(json: &str) -> Result<Self> {
        let wrong = |e: serde_json::Error| Error::state(format!("not a manifest of gristmill's: {e}"));
        let value: Json = serde_json::from_str(json).map_err(wrong)?;
        match value.get("gristmill_manifest").and_then(Json::as_u64) {
            Some(version) if version == u64::from(FORMAT) => serde_json::from_value(value).map_err(wrong),
            Some(version) => Err(Error::state(format!("manifest format {version}, but this gristmill reads {FORMAT}"))
                .help("use the version of gristmill that wrote it")),
            None => Err(Error::state("not a manifest of gristmill's: no field \"gristmill_manifest\"")),
        }
    }

    /// Returns the manifest as indented JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and JSON values serialise") + "\n"
    }

    /// Returns the layout of token files, from the options. Files without a header cannot be read without the layout.
    pub(crate) fn layout(&self) -> TokenLayout {
        let token = match self.options.get("token_type").and_then(Json::as_str) {
            Some("uint32") => TokenType::U32,
            _ => TokenType::U16,
        };
        let is_bare = self.options.get("bare").and_then(Json::as_bool) == Some(true);
        if is_bare { TokenLayout::Bare(token) } else { TokenLayout::Detect }
    }

    /// Returns the size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files().fold(0, |bytes, file| bytes.saturating_add(file.bytes))
    }

    /// Returns all files; files of shards come first.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        self.shards.iter().flat_map(|shard| &shard.files).chain(&self.files)
    }

    /// Returns the checkpoint of the pipeline after the last shard, if a pipeline produced the elements.
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
            edits: Vec::new(),
            edited_mix: None,
        })
    }

    /// Checks that a sink whose manifest would be `new` may continue this folder.
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
