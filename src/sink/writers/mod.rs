//! One adapter a format: elements into the files of a shard.

#[cfg(feature = "array_record")]
mod array_record;
#[cfg(feature = "arrow")]
mod arrow;
mod beside;
mod jsonl;
#[cfg(feature = "mds")]
mod mds;
mod megatron;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(any(feature = "array_record", feature = "tf_record"))]
mod record;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "tf_record")]
mod tf_record;
mod tokens;
#[cfg(feature = "webdataset")]
mod web_dataset;

use std::sync::Arc;

use rayon::ThreadPool;
use serde_json::Value as Json;

pub(super) use self::beside::beside;
use super::format::SinkFormat;
use super::options::SinkOptions;
use super::schema::Schema;
use super::shard_file::ShardFile;
use crate::element::Element;
use crate::error::Result;

/// Writes a shard. What it writes follows from the elements and the options alone.
pub(super) trait ShardWriter: Send {
    fn write(&mut self, element: &Element) -> Result<()>;

    /// Writes what is left; the files are published by whoever asks.
    fn finish(self: Box<Self>) -> Result<Finished>;
}

/// A shard that is written and not yet published.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) files: Vec<ShardFile>,
    /// Facts of it that the manifest keeps for [`beside`].
    pub(super) note: Option<Json>,
}

impl From<ShardFile> for Finished {
    fn from(file: ShardFile) -> Self {
        Self { files: vec![file], note: None }
    }
}

/// Begins files of a shard: its own, or one with another ending.
type Create<'a> = &'a mut dyn FnMut(Option<&str>) -> Result<ShardFile>;

/// Facts that shards share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    /// The columns, in formats that have columns.
    pub(super) schema: Option<&'a Schema>,
    /// Threads that work on one shard together, where the format has parts for several.
    pub(super) pool: Option<&'a Arc<ThreadPool>>,
}

/// Begins a shard.
#[cfg_attr(
    not(all(feature = "webdataset", feature = "mds", feature = "parquet")),
    allow(unused_variables, reason = "formats that number their records, or have columns, are off")
)]
pub(super) fn open(
    options: &SinkOptions,
    Shared { schema, pool }: Shared<'_>,
    first_record: u64,
    create: Create<'_>,
) -> Result<Box<dyn ShardWriter>> {
    match options.format {
        SinkFormat::Jsonl => jsonl::open(create),
        SinkFormat::Tokens => tokens::open(options, create),
        #[cfg(feature = "webdataset")]
        SinkFormat::WebDataset => web_dataset::open(schema, first_record, create),
        #[cfg(not(feature = "webdataset"))]
        SinkFormat::WebDataset => Err(options.format.lacking()),
        #[cfg(feature = "mds")]
        SinkFormat::Mds => mds::open(options, schema, create),
        #[cfg(not(feature = "mds"))]
        SinkFormat::Mds => Err(options.format.lacking()),
        SinkFormat::Megatron => megatron::open(options, create),
        SinkFormat::Npy => npy::open(options, create),
        #[cfg(feature = "safetensors")]
        SinkFormat::Safetensors => safetensors::open(create),
        #[cfg(not(feature = "safetensors"))]
        SinkFormat::Safetensors => Err(options.format.lacking()),
        #[cfg(feature = "parquet")]
        SinkFormat::Parquet => parquet::open(options, schema, pool, create),
        #[cfg(not(feature = "parquet"))]
        SinkFormat::Parquet => Err(options.format.lacking()),
        #[cfg(feature = "arrow")]
        SinkFormat::Arrow | SinkFormat::HuggingFace => arrow::open(options, schema, create),
        #[cfg(not(feature = "arrow"))]
        SinkFormat::Arrow | SinkFormat::HuggingFace => Err(options.format.lacking()),
        #[cfg(feature = "array_record")]
        SinkFormat::ArrayRecord => array_record::open(options, create),
        #[cfg(not(feature = "array_record"))]
        SinkFormat::ArrayRecord => Err(options.format.lacking()),
        #[cfg(feature = "tf_record")]
        SinkFormat::TfRecord => tf_record::open(options, create),
        #[cfg(not(feature = "tf_record"))]
        SinkFormat::TfRecord => Err(options.format.lacking()),
    }
}
