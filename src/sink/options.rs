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

    setters! {
        /// Sets the size of shards, in bytes of their values in memory; the default is 256 MiB. A shard ends after the
        /// record that reaches this size.
        pub shard_bytes(bytes: u64) => shard_bytes = bytes.max(1);

        /// Sets the maximum number of records in a shard. There is no maximum by default.
        pub shard_records(records: u64) => shard_records = Some(records.max(1));

        /// Sets the compression of shards. The default depends on the format: see [`SinkFormat::default_compression`].
        pub compression: Compression;

        /// Sets the number of records that are encoded together, in formats with such groups.
        ///
        /// A group is a chunk of ArrayRecord (default 1), a row group of Parquet (default 65,536, or 64 MiB), or a
        /// record batch of Arrow (default 1,024, or 16 MiB).
        pub group(records: u64) => group = Some(records.max(1));

        /// Sets the column to write, in formats that hold a single column. The default is `tokens` in formats of token
        /// ids.
        pub column(column: impl Into<String>) => column = Some(column.into());

        /// Sets the columns that are sequences, in formats whose records are examples. There are none by default.
        ///
        /// With sequences, each record is a `tf.train.SequenceExample`. A sequence has a step for each item of the
        /// list, or each row of the array, in its column. The other columns are its context. Without sequences, a
        /// record is a `tf.train.Example`, or the bytes or the text of an element with a single field.
        pub sequences<S: Into<String>>(columns: impl IntoIterator<Item = S>) =>
            sequences = columns.into_iter().map(Into::into).collect();

        /// Sets the storage type of token ids, in formats of token ids. The default is two bytes, which holds ids up to
        /// 65,535.
        pub token_type: TokenType;

        /// Omits the header of files of token ids, as nanoGPT does. Off by default, because readers detect the storage
        /// type of ids from the header.
        pub bare: bool;

        /// Stores floating-point numbers of Parquet byte by byte: all first bytes, then all second bytes. Off by
        /// default.
        ///
        /// Activations and features then benefit from compression, and take a tenth less space. Numbers that repeat
        /// take more space.
        pub byte_stream_split: bool;

        /// Sets the types of columns, in formats that have columns. No column is declared by default.
        ///
        /// The types of other columns are inferred from the first records: 1,024 of them, or 8 MiB. All shards have the
        /// same columns, and a record that does not fit is an error.
        ///
        /// Numbers of another type are converted to the type of a declared column: integers have to fit, other numbers
        /// are rounded.
        pub schema: Schema;

        /// Sets the prefix of the names of shards; the default is `shard`.
        pub prefix(prefix: impl Into<String>) => prefix = prefix.into();

        /// Sets the number of threads that encode, each a single shard at a time; the default is a thread per core.
        ///
        /// With two or more threads, an equal number of further threads compresses columns of Parquet and sections of
        /// files. Sections are 4 to 32 MiB of a file that is compressed whole. The number of threads does not change
        /// the written bytes.
        pub threads(threads: usize) => threads = threads.max(1);

        /// Sets the limit of bytes of elements that wait to be encoded; the default is 1 GiB.
        ///
        /// Several threads work at a time if the limit is several times [`shard_bytes`](Self::shard_bytes). The memory
        /// of the encoders is not included.
        pub memory: u64;

        /// Sets whether a folder that holds shards is continued after its last shard. Such a folder is refused by
        /// default.
        pub resume: bool;
    }

    /// Declares columns that are not declared yet.
    pub(crate) fn more_columns(mut self, columns: &Schema) -> Self {
        for (name, holds) in columns.columns() {
            if self.schema.get(name).is_none() {
                self.schema = self.schema.with(name, holds.clone());
            }
        }
        self
    }

    /// Checks that a sink can be opened with these options; returns the facts of the format.
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
                .help("allowed are letters, digits and ._-+=@, without a dot at the start"));
        }
        if self.threads > MOST_THREADS {
            return Err(Error::config(format!("threads is {}, and must be {MOST_THREADS} or less", self.threads)));
        }
        Ok(facts)
    }

    /// Returns the manifest of an empty folder.
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

    /// Returns the name of the column of token ids.
    pub(super) fn tokens(&self) -> &str {
        self.column.as_deref().unwrap_or("tokens")
    }

    /// Returns the options that determine the contents of each shard.
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
