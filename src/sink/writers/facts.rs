//! Facts of a format that the rest of a sink uses.

use std::sync::Arc;

use rayon::ThreadPool;
use serde_json::Value as Json;

use super::ShardWriter;
use crate::error::Result;
use crate::sink::compression::Compression;
use crate::sink::manifest::Manifest;
use crate::sink::options::SinkOptions;
use crate::sink::schema::{ColumnRules, Schema};
use crate::sink::shard_file::ShardFile;

/// Facts of a format, defined beside its writer: `Facts { …, ..Facts::of(…) }`.
pub(in crate::sink) struct Facts {
    /// Ending of the names of shards, before the ending of the compression.
    pub(in crate::sink) ending: &'static str,
    /// Compressions of the format, the default first, each with its addition to the ending.
    pub(in crate::sink) compressions: &'static [(Compression, &'static str)],
    /// True if the whole file is compressed, instead of parts inside it.
    pub(in crate::sink) packs_files: bool,
    /// True if several threads can work on a shard together.
    pub(in crate::sink) has_parts: bool,
    /// True if records may be examples, which can have sequences.
    pub(in crate::sink) holds_examples: bool,
    /// True if the number of records does not change between writing and reading.
    pub(in crate::sink) keeps_records: bool,
    /// Rules for the columns, which all shards share; `None` in formats without columns.
    pub(in crate::sink) columns: Option<&'static ColumnRules>,
    /// Options specific to the format that determine the contents of shards; the manifest keeps them.
    pub(in crate::sink) options: fn(&SinkOptions) -> Vec<(&'static str, Json)>,
    /// Function that begins a shard.
    pub(in crate::sink) open: Open,
    /// Creates the files that the format has once for all shards, from a manifest that lists all shards.
    pub(in crate::sink) beside: fn(&Manifest) -> Result<Vec<Beside>>,
}

/// A file beside the shards: its name and its content.
pub(in crate::sink) type Beside = (&'static str, Vec<u8>);

/// Function that begins a shard, in files that the second argument creates.
pub(super) type Open = fn(&NewShard<'_>, Create<'_>) -> Result<Box<dyn ShardWriter>>;

/// Function that creates a file of a shard, with the ending of the format or with another ending.
pub(super) type Create<'a> = &'a mut dyn FnMut(Option<&str>) -> Result<ShardFile>;

/// Parameters of a new shard.
#[derive(Clone, Copy)]
pub(in crate::sink) struct NewShard<'a> {
    pub(in crate::sink) options: &'a SinkOptions,
    /// Columns, in formats that have columns.
    pub(in crate::sink) schema: Option<&'a Schema>,
    /// Threads that work on a shard together, in formats that support this.
    pub(in crate::sink) pool: Option<&'a Arc<ThreadPool>>,
    /// Number of the shard's first record.
    pub(in crate::sink) first_record: u64,
}

/// No compression.
pub(super) const NONE: &[(Compression, &str)] = &[(Compression::None, "")];
/// Compressions of whole files, which readers of text and tar decompress.
pub(super) const WHOLE_FILE: &[(Compression, &str)] = &[
    (Compression::None, ""),
    (Compression::Zstd(3), ".zst"),
    (Compression::Gzip(6), ".gz"),
    (Compression::Lz4, ".lz4"),
];

impl Facts {
    /// Returns the facts of a format without compression and columns, with a single file per shard and no other files.
    pub(super) const fn of(ending: &'static str, open: Open) -> Self {
        Self {
            ending,
            compressions: NONE,
            packs_files: false,
            has_parts: false,
            holds_examples: false,
            keeps_records: true,
            columns: None,
            options: |_| Vec::new(),
            open,
            beside: |_| Ok(Vec::new()),
        }
    }

    /// Returns the ending of the names of shards with this compression.
    pub(in crate::sink) fn ending(&self, compression: Compression) -> String {
        let known = self.compressions.iter().find(|(known, _)| known.name() == compression.name());
        format!("{}{}", self.ending, known.map_or("", |(_, packed)| packed))
    }
}

debug_as!(Facts, |self, f| f.debug_struct("Facts").field("ending", &self.ending).finish_non_exhaustive());
