//! Formats that a sink writes, each in a separate file, and the list of all formats.

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

/// Writer of a shard. Its output depends only on the elements and the options.
pub(super) trait ShardWriter: Send {
    fn write(&mut self, element: &Element) -> Result<()>;

    /// Writes the remaining elements and returns the files, which the caller publishes.
    fn finish(self: Box<Self>) -> Result<Finished>;
}

/// Implements [`ShardWriter`] for a writer of elements to one file.
macro_rules! shard_writer {
    ($writer:ident) => {
        impl $crate::sink::writers::ShardWriter for $writer<$crate::sink::shard_file::ShardFile> {
            fn write(&mut self, element: &$crate::Element) -> $crate::Result<()> {
                self.write(element)
            }

            fn finish(self: Box<Self>) -> $crate::Result<$crate::sink::writers::Finished> {
                Ok((*self).finish()?.into())
            }
        }
    };
}
use shard_writer;

/// A shard that is written but not published yet.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) files: Vec<ShardFile>,
    /// Data of the shard that the manifest keeps for the files [beside](Facts::beside) the shards.
    pub(super) note: Option<Json>,
}

from_as!(ShardFile => Finished, |file| Self { files: vec![file], note: None });

/// Generates a [`SinkFormat`] from each line: its name, the module of its [`Facts`], and the feature that it requires.
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
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            /// Returns the name in the command line and in Python.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$format => $name,)*
                }
            }

            /// Returns the facts of the format, or the feature that this build lacks.
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
    /// JSON Lines: an object per element. Holds numbers, text, lists and trees, but not bytes.
    Jsonl = "jsonl" in jsonl;
    /// Parquet: a row per element. Holds all values.
    Parquet = "parquet" in parquet if "parquet";
    /// ArrayRecord: the bytes or the text of an element with a single field, otherwise a `tf.train.Example`. Examples
    /// hold numbers as `int64` and `float32`, without shapes.
    ArrayRecord = "array_record" in array_record if "array_record";
    /// TFRecord: the records of ArrayRecord.
    TfRecord = "tfrecord" in tf_record if "tf_record";
    /// Arrow IPC files, also known as Feather version 2: a row per element. Holds all values.
    Arrow = "arrow" in arrow if "arrow";
    /// A folder for `datasets.load_from_disk` of Hugging Face: Arrow IPC streams, and the files that list them.
    HuggingFace = "hugging_face" in hugging_face if "arrow";
    /// WebDataset: tar files with a sample per element and a file per field.
    ///
    /// The key of an element without `__key__` is the number of the record. Arrays are files `NAME.npy`, and lists and
    /// trees are files `NAME.json`, unless the name has such an ending already. All files of a column have the same
    /// ending.
    #[serde(rename = "webdataset")]
    WebDataset = "webdataset" in web_dataset if "webdataset";
    /// A folder of MosaicML's MDS: a sample per element, with the same columns in all shards.
    Mds = "mds" in mds if "mds";
    /// NumPy arrays: the chosen column, or the only column, as rows with a fixed type and shape.
    Npy = "npy" in npy;
    /// Safetensors: the arrays of elements as rows of tensors with a fixed type and shape. A shard is held in memory.
    Safetensors = "safetensors" in safetensors if "safetensors";
    /// Token ids: the column [`tokens`](super::SinkOptions::column), without borders between elements. Files have
    /// llm.c's header unless they are [bare](super::SinkOptions::bare).
    Tokens = "tokens" in tokens;
    /// Megatron's indexed datasets: the column [`tokens`](super::SinkOptions::column), with a sequence and a document
    /// per element. Each `.bin` file has an `.idx` file beside it.
    Megatron = "megatron" in megatron;
}
