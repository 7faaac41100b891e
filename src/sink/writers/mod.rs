//! The formats that are written: each in a file of its own, and all of them in one list.

#[cfg(feature = "array_record")]
mod array_record;
#[cfg(feature = "arrow")]
mod arrow;
mod facts;
#[cfg(feature = "arrow")]
mod hugging_face;
mod jsonl;
#[cfg(feature = "columns")]
pub(crate) mod kinds;
#[cfg(feature = "mds")]
mod mds;
mod megatron;
mod npy;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(any(feature = "array_record", feature = "tf_record"))]
mod record;
mod rows;
#[cfg(feature = "safetensors")]
mod safetensors;
#[cfg(feature = "tf_record")]
mod tf_record;
mod tokens;
#[cfg(feature = "webdataset")]
mod web_dataset;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub(super) use self::facts::{Beside, Facts, NewShard};
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
    /// Facts of it that the manifest keeps for the files [beside](Facts::beside) the shards.
    pub(super) note: Option<Json>,
}

impl From<ShardFile> for Finished {
    fn from(file: ShardFile) -> Self {
        Self { files: vec![file], note: None }
    }
}

/// Makes a [`SinkFormat`] of each line: its name, the module of its [`Facts`], and the feature without which a build lacks it.
macro_rules! formats {
    ($($(#[$about:meta])* $format:ident = $name:literal in $writer:ident $(if $feature:literal)?;)*) => {
        /// A format that a [`Sink`](super::Sink) writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum SinkFormat {
            $($(#[$about])* $format,)*
        }

        impl SinkFormat {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            /// The name, as the command line and Python have it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$format => $name,)*
                }
            }

            /// Its facts, or the feature that this build lacks.
            pub(super) fn built(self) -> std::result::Result<&'static Facts, &'static str> {
                match self {$(
                    $(#[cfg(not(feature = $feature))] Self::$format => Err($feature),)?
                    $(#[cfg(feature = $feature)])? Self::$format => Ok(&$writer::FACTS),
                )*}
            }
        }
    };
}

formats! {
    /// JSON Lines: an object for each element. Holds numbers, text, lists and trees; not bytes.
    Jsonl = "jsonl" in jsonl;
    /// Parquet: a row for each element. Holds everything.
    Parquet = "parquet" in parquet if "parquet";
    /// ArrayRecord: the bytes or the text of elements with one field; of others a `tf.train.Example`, which holds numbers as `int64`
    /// and `float32`, without shapes.
    ArrayRecord = "array_record" in array_record if "array_record";
    /// TFRecord: records as ArrayRecord has them.
    TfRecord = "tfrecord" in tf_record if "tf_record";
    /// Arrow IPC files, which are also the second version of Feather: a row for each element. Holds everything.
    Arrow = "arrow" in arrow if "arrow";
    /// A folder that `datasets.load_from_disk` of Hugging Face reads: Arrow IPC streams, and what lists them.
    HuggingFace = "hugging_face" in hugging_face if "arrow";
    /// WebDataset: tar files, a sample for each element, a file in it for each field. `__key__`, where there is none, is the number
    /// of the record. Arrays are files `NAME.npy`, lists and trees `NAME.json`, unless names end so: of a
    /// column all or none.
    #[serde(rename = "webdataset")]
    WebDataset = "webdataset" in web_dataset if "webdataset";
    /// A folder of MosaicML's MDS: a sample for each element, columns as the first of each shard has them.
    Mds = "mds" in mds if "mds";
    /// NumPy arrays: the column that is chosen, or the only one, as rows of one type and shape.
    Npy = "npy" in npy;
    /// Safetensors: the arrays of elements as rows of tensors, of one type and shape each. A shard is held in memory.
    Safetensors = "safetensors" in safetensors if "safetensors";
    /// Token ids in a row: the column [`tokens`](super::SinkOptions::column), without borders between elements; with llm.c's
    /// header unless it is to be [bare](super::SinkOptions::bare).
    Tokens = "tokens" in tokens;
    /// Megatron's indexed datasets: the column [`tokens`](super::SinkOptions::column), each element a sequence and a document; an
    /// `.idx` file beside every `.bin`.
    Megatron = "megatron" in megatron;
}
