//! The formats that are written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::compression::Compression;
use crate::error::{Error, Result};

/// A format that a [`Sink`](super::Sink) writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SinkFormat {
    /// JSON Lines: an object for each element. Holds numbers, text, lists and trees; not bytes.
    Jsonl,
    /// ArrayRecord: the bytes or the text of elements with one field; of others a `tf.train.Example`, which holds numbers as `int64`
    /// and `float32`, without shapes.
    ArrayRecord,
    /// TFRecord: records as ArrayRecord has them.
    TfRecord,
    /// Token ids in a row: the column [`tokens`](super::SinkOptions::column), without borders between elements; with llm.c's
    /// header unless it is to be [bare](super::SinkOptions::bare).
    Tokens,
    /// Megatron's indexed datasets: the column [`tokens`](super::SinkOptions::column), each element a sequence and a document; an
    /// `.idx` file beside every `.bin`.
    Megatron,
    #[serde(rename = "webdataset")]
    /// WebDataset: tar files, a sample for each element, a file in it for each field. `__key__`, where there is none, is the number
    /// of the record. Arrays are files `NAME.npy`, lists and trees `NAME.json`, unless names end so: of a
    /// column all or none.
    WebDataset,
    /// A folder of MosaicML's MDS: a sample for each element, columns as the first of each shard has them.
    Mds,
    /// NumPy arrays: the column that is chosen, or the only one, as rows of one type and shape.
    Npy,
    /// Safetensors: the arrays of elements as rows of tensors, of one type and shape each. A shard is held in memory.
    Safetensors,
    /// Parquet: a row for each element. Holds everything.
    Parquet,
    /// Arrow IPC files, which are also the second version of Feather: a row for each element. Holds everything.
    Arrow,
    /// A folder that `datasets.load_from_disk` of Hugging Face reads: Arrow IPC streams, and what lists them.
    HuggingFace,
}

/// Facts of a format.
struct Facts {
    name: &'static str,
    ending: &'static str,
    /// Compressions that it can have, by name, the first at first.
    compressions: &'static [Compression],
    feature: Option<(&'static str, bool)>,
}

const NONE: &[Compression] = &[Compression::None];
const WHOLE_FILE: &[Compression] = &[Compression::None, Compression::Zstd(3), Compression::Gzip(6), Compression::Lz4];

macro_rules! feature {
    ($name:literal) => {
        Some(($name, cfg!(feature = $name)))
    };
}

impl SinkFormat {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Jsonl,
        Self::Parquet,
        Self::ArrayRecord,
        Self::TfRecord,
        Self::Arrow,
        Self::HuggingFace,
        Self::WebDataset,
        Self::Mds,
        Self::Npy,
        Self::Safetensors,
        Self::Tokens,
        Self::Megatron,
    ];

    const fn facts(self) -> Facts {
        match self {
            Self::Jsonl => Facts { name: "jsonl", ending: ".jsonl", compressions: WHOLE_FILE, feature: None },
            Self::ArrayRecord => Facts {
                name: "array_record",
                ending: ".array_record",
                compressions: &[Compression::Zstd(3), Compression::None, Compression::Brotli(5), Compression::Snappy],
                feature: feature!("array_record"),
            },
            Self::Tokens => Facts { name: "tokens", ending: ".bin", compressions: NONE, feature: None },
            Self::TfRecord => Facts {
                name: "tfrecord",
                ending: ".tfrecord",
                compressions: &[Compression::None, Compression::Gzip(6)],
                feature: feature!("tf_record"),
            },
            Self::WebDataset => {
                Facts { name: "webdataset", ending: ".tar", compressions: WHOLE_FILE, feature: feature!("webdataset") }
            }
            Self::Mds => Facts {
                name: "mds",
                ending: ".mds",
                compressions: &[
                    Compression::None,
                    Compression::Zstd(3),
                    Compression::Gzip(6),
                    Compression::Brotli(5),
                    Compression::Snappy,
                ],
                feature: feature!("mds"),
            },
            Self::Npy => Facts { name: "npy", ending: ".npy", compressions: NONE, feature: None },
            Self::Safetensors => Facts {
                name: "safetensors",
                ending: ".safetensors",
                compressions: NONE,
                feature: feature!("safetensors"),
            },
            Self::Parquet => Facts {
                name: "parquet",
                ending: ".parquet",
                compressions: &[
                    Compression::Zstd(3),
                    Compression::None,
                    Compression::Snappy,
                    Compression::Lz4,
                    Compression::Gzip(6),
                    Compression::Brotli(5),
                ],
                feature: feature!("parquet"),
            },
            Self::Arrow => Facts {
                name: "arrow",
                ending: ".arrow",
                compressions: &[Compression::None, Compression::Zstd(3), Compression::Lz4],
                feature: feature!("arrow"),
            },
            // `datasets` maps its files, and reads no others.
            Self::HuggingFace => {
                Facts { name: "hugging_face", ending: ".arrow", compressions: NONE, feature: feature!("arrow") }
            }
            Self::Megatron => Facts { name: "megatron", ending: ".bin", compressions: NONE, feature: None },
        }
    }

    /// The name, as the command line and Python have it.
    pub const fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The compression that it has unless another is chosen.
    pub fn default_compression(self) -> Compression {
        self.facts().compressions[0]
    }

    /// The ending of names of its shards.
    pub(super) fn ending(self, compression: Compression) -> String {
        let packed = match compression {
            Compression::Zstd(_) if self == Self::Mds => ".zstd",
            Compression::Gzip(_) if self == Self::Mds => ".gz",
            Compression::Brotli(_) if self == Self::Mds => ".br",
            Compression::Snappy if self == Self::Mds => ".snappy",
            Compression::Zstd(_) if self.packs_files() => ".zst",
            Compression::Gzip(_) if self.packs_files() => ".gz",
            Compression::Lz4 if self.packs_files() => ".lz4",
            _ => "",
        };
        format!("{}{packed}", self.facts().ending)
    }

    /// Whether whole files are compressed, not what is in them.
    pub(super) fn packs_files(self) -> bool {
        matches!(self, Self::Jsonl | Self::TfRecord | Self::WebDataset)
    }

    /// Whether it holds token ids and nothing else.
    pub(super) fn holds_tokens(self) -> bool {
        matches!(self, Self::Tokens | Self::Megatron)
    }

    /// Whether its records are examples.
    pub(super) fn holds_examples(self) -> bool {
        matches!(self, Self::ArrayRecord | Self::TfRecord)
    }

    /// Whether reading gives as many records as were written: from a file of token ids, one comes.
    pub fn keeps_records(self) -> bool {
        !matches!(self, Self::Tokens | Self::Safetensors)
    }

    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where this build does not write it, or not with `compression`;
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) where the format has no such compression.
    pub(super) fn check(self, compression: Compression) -> Result<()> {
        let Facts { name, compressions, feature, .. } = self.facts();
        if let Some((_, false)) = feature {
            return Err(self.lacking());
        }
        if !compressions.iter().any(|known| known.name() == compression.name()) {
            let known: Vec<&str> = compressions.iter().map(|known| known.name()).collect();
            return Err(Error::config(format!("{name} has no compression {}", compression.name()))
                .help(format!("it has {}", known.join(", "))));
        }
        if self.packs_files() && compression != Compression::None && !cfg!(feature = "compress") {
            return Err(lacking("compressed", "compress"));
        }
        Ok(())
    }

    /// Says that this build lacks its feature.
    pub(super) fn lacking(self) -> Error {
        lacking(self.as_str(), self.facts().feature.map_or("", |(feature, _)| feature))
    }
}

fn lacking(what: &str, feature: &str) -> Error {
    Error::unsupported(format!("{what} files need the feature `{feature}`, which this build lacks"))
        .help(format!("build with `--features {feature}`"))
}

impl fmt::Display for SinkFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// By [name](SinkFormat::as_str).
impl FromStr for SinkFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|format| format.as_str() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|format| format.as_str()).collect();
            Error::config(format!("`{name}` is no format that is written"))
                .help(format!("there are {}", names.join(", ")))
        })
    }
}
