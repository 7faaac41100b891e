//! Options of a sink.

use serde_json::{Map, Value as Json, json};

use super::compression::Compression;
use super::format::SinkFormat;
use super::manifest::{FORMAT, Manifest};
use super::schema::Schema;
use super::writers::Facts;
use crate::error::{Error, Result};
use crate::exec::MOST_THREADS;
use crate::source::TokenType;

/// Options of a [`Sink`](super::Sink): see [`Sink::options`](super::Sink::options).
#[derive(Clone, Debug)]
#[must_use = "options do nothing until `open`"]
pub struct SinkOptions {
    pub(super) format: SinkFormat,
    pub(super) compression: Compression,
    pub(super) prefix: String,
    pub(super) shard_bytes: u64,
    pub(super) shard_records: Option<u64>,
    pub(super) group: Option<u64>,
    pub(super) column: Option<String>,
    pub(super) sequences: Vec<String>,
    pub(super) token_type: TokenType,
    pub(super) bare: bool,
    pub(super) byte_stream_split: bool,
    pub(super) schema: Schema,
    pub(super) threads: usize,
    pub(super) memory: u64,
    pub(super) resume: bool,
}

const SHARD_BYTES: u64 = 256 << 20;
const MEMORY: u64 = 1 << 30;

impl SinkOptions {
    pub(super) fn new(format: SinkFormat) -> Self {
        Self {
            format,
            compression: format.default_compression(),
            prefix: "shard".to_owned(),
            shard_bytes: SHARD_BYTES,
            shard_records: None,
            group: None,
            column: None,
            sequences: Vec::new(),
            token_type: TokenType::U16,
            bare: false,
            byte_stream_split: false,
            schema: Schema::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: MEMORY,
            resume: false,
        }
    }

    /// A shard ends behind the record with which the bytes of its values, as they are in memory, are as many; 256 MiB at first.
    pub fn shard_bytes(mut self, bytes: u64) -> Self {
        self.shard_bytes = bytes.max(1);
        self
    }

    /// A shard has so many records at most; any number at first.
    pub fn shard_records(mut self, records: u64) -> Self {
        self.shard_records = Some(records.max(1));
        self
    }

    /// Sets how shards are compressed; at first as the format mostly is: see [`SinkFormat::default_compression`].
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Records that are encoded together, in formats that have such a thing: a chunk of ArrayRecord (1 at first), a row
    /// group of Parquet (65,536, or 64 MiB), a record batch of Arrow (1,024, or 16 MiB).
    pub fn group(mut self, records: u64) -> Self {
        self.group = Some(records.max(1));
        self
    }

    /// The column that is written, in formats that hold one; `tokens` at first in those of token ids.
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// The columns that are sequences, in formats of records that are examples: each is a `tf.train.SequenceExample` then, with a step
    /// for each item of the list or each row of the array that such a column holds, and the other columns as its context. None at
    /// first: a record is a `tf.train.Example`, or the bytes or the text of an element with one field.
    pub fn sequences<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.sequences = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how token ids are stored, in formats of those; by two bytes at first, which ids above 65,535 do not fit.
    pub fn token_type(mut self, token: TokenType) -> Self {
        self.token_type = token;
        self
    }

    /// Whether files of token ids have no header, as nanoGPT's have none. Not at first: readers then find out by themselves how
    /// ids are stored.
    pub fn bare(mut self, bare: bool) -> Self {
        self.bare = bare;
        self
    }

    /// Whether Parquet holds floating-point numbers byte by byte: all first bytes, then all second ones. Activations and features
    /// take a tenth less room so, and gain from compression at all; numbers that repeat take more. Not so at first.
    pub fn byte_stream_split(mut self, split: bool) -> Self {
        self.byte_stream_split = split;
        self
    }

    /// Sets what columns hold, in formats that have columns; those that are not named here, and all of them at first, hold what the first
    /// records do: 1,024 of them, or 8 MiB. All shards have the same columns, and a record that does not fit is an error.
    ///
    /// Numbers of a column that is declared may come as another type: whole ones have to fit, others are rounded.
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// Declares columns that are not declared yet.
    #[cfg(feature = "cli")]
    pub(crate) fn more_columns(mut self, columns: &Schema) -> Self {
        for (name, holds) in columns.columns() {
            if self.schema.get(name).is_none() {
                self.schema = self.schema.with(name, holds.clone());
            }
        }
        self
    }

    /// Sets what names of shards begin with; `shard` at first.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Threads that encode, each a shard at a time; one for every core at first. Where there are several, as many more compress the
    /// columns of Parquet, and files that are compressed whole in sections of 4 to 32 MiB. They change no byte.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Bytes of elements that may wait to be encoded; 1 GiB at first. Several threads work at once where it is several
    /// times [`shard_bytes`](Self::shard_bytes). What encoders hold themselves comes on top.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Whether a folder that holds shards is continued behind the last of them. Else it is refused.
    pub fn resume(mut self, resume: bool) -> Self {
        self.resume = resume;
        self
    }

    /// Checks that a sink can be opened with them, and gives the facts of the format.
    pub(super) fn check(&self) -> Result<&'static Facts> {
        self.format.check(self.compression)?;
        self.schema.check(self.format)?;
        let facts = self.format.facts()?;
        if !self.sequences.is_empty() && !facts.holds_examples {
            return Err(Error::config(format!("{} has no sequences", self.format))
                .help("tfrecord and array_record have them, as `tf.train.SequenceExample`"));
        }
        let plain = |c: char| c.is_alphanumeric() || "._-+=@".contains(c);
        if self.prefix.is_empty() || self.prefix.starts_with('.') || !self.prefix.chars().all(plain) {
            return Err(Error::config(format!("{:?} cannot begin the names of files", self.prefix))
                .help("letters, digits and ._-+=@ can, and no dot at the start"));
        }
        if self.threads > MOST_THREADS {
            return Err(Error::config(format!("threads is {}, and must be {MOST_THREADS} or less", self.threads)));
        }
        Ok(facts)
    }

    /// The manifest of an empty folder.
    pub(super) fn manifest(&self, facts: &Facts) -> Manifest {
        Manifest {
            gristmill_manifest: FORMAT,
            crate_version: env!("CARGO_PKG_VERSION").to_owned(),
            format: self.format,
            compression: self.compression,
            options: self.shape(facts),
            schema: None,
            unsettled: false,
            pipeline: None,
            complete: false,
            records: 0,
            shards: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The column of token ids.
    pub(super) fn tokens(&self) -> &str {
        self.column.as_deref().unwrap_or("tokens")
    }

    /// The options that decide what is in which shard.
    fn shape(&self, facts: &Facts) -> Map<String, Json> {
        let mut shape = Map::new();
        shape.insert("prefix".to_owned(), json!(self.prefix));
        shape.insert("shard_bytes".to_owned(), json!(self.shard_bytes));
        shape.insert("shard_records".to_owned(), json!(self.shard_records));
        shape.insert("group".to_owned(), json!(self.group));
        if !self.schema.is_empty() {
            shape.insert("schema".to_owned(), json!(self.schema));
        }
        if let Some(column) = &self.column {
            shape.insert("column".to_owned(), json!(column));
        }
        if !self.sequences.is_empty() {
            shape.insert("sequences".to_owned(), json!(self.sequences));
        }
        shape.extend((facts.options)(self).into_iter().map(|(name, value)| (name.to_owned(), value)));
        shape
    }
}
