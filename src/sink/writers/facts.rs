//! Everything that the rest of a sink knows of a format.

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

/// Facts of a format, in the file of its writer: `Facts { …, ..Facts::of(…) }`.
pub(in crate::sink) struct Facts {
    /// The ending of names of shards, in front of that of the compression.
    pub(in crate::sink) ending: &'static str,
    /// Compressions that it can have, the default at first, each with what it adds to the ending.
    pub(in crate::sink) compressions: &'static [(Compression, &'static str)],
    /// Whether whole files are compressed, not what is in them.
    pub(in crate::sink) packs_files: bool,
    /// Whether several threads can work on one shard together.
    pub(in crate::sink) has_parts: bool,
    /// Whether records may be examples, which have sequences.
    pub(in crate::sink) holds_examples: bool,
    /// Whether reading gives as many records as were written.
    pub(in crate::sink) keeps_records: bool,
    /// The columns, which are the same in all shards, in formats that have columns.
    pub(in crate::sink) columns: Option<&'static ColumnRules>,
    /// Options beside those of all formats that decide what is in a shard: the manifest keeps them.
    pub(in crate::sink) options: fn(&SinkOptions) -> Vec<(&'static str, Json)>,
    /// Begins a shard.
    pub(in crate::sink) open: Open,
    /// Makes the files that the format has once for all shards, of a manifest that lists all shards there are.
    pub(in crate::sink) beside: fn(&Manifest) -> Result<Vec<Beside>>,
}

/// A file beside the shards: its name, and its content.
pub(in crate::sink) type Beside = (&'static str, Vec<u8>);

/// Begins a shard, in files that are created by the second argument.
pub(super) type Open = fn(&NewShard<'_>, Create<'_>) -> Result<Box<dyn ShardWriter>>;

/// Begins files of a shard: its own, or one with another ending.
pub(super) type Create<'a> = &'a mut dyn FnMut(Option<&str>) -> Result<ShardFile>;

/// A shard that is to be begun.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "each of these is there for some formats, which may be off")]
pub(in crate::sink) struct NewShard<'a> {
    pub(in crate::sink) options: &'a SinkOptions,
    /// The columns, in formats that have columns.
    pub(in crate::sink) schema: Option<&'a Schema>,
    /// Threads that work on one shard together, in formats that have parts for several.
    pub(in crate::sink) pool: Option<&'a Arc<ThreadPool>>,
    /// The number of its first record.
    pub(in crate::sink) first_record: u64,
}

/// No compression.
pub(super) const NONE: &[(Compression, &str)] = &[(Compression::None, "")];
/// Compressions of whole files, which readers of text and tar undo.
pub(super) const WHOLE_FILE: &[(Compression, &str)] = &[
    (Compression::None, ""),
    (Compression::Zstd(3), ".zst"),
    (Compression::Gzip(6), ".gz"),
    (Compression::Lz4, ".lz4"),
];

impl Facts {
    /// A format without compression and columns, with one file a shard and nothing beside them.
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

    /// The ending of names of shards that are compressed so.
    pub(in crate::sink) fn ending(&self, compression: Compression) -> String {
        let known = self.compressions.iter().find(|(known, _)| known.name() == compression.name());
        format!("{}{}", self.ending, known.map_or("", |(_, packed)| packed))
    }
}

impl std::fmt::Debug for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").field("ending", &self.ending).finish_non_exhaustive()
    }
}
