//! Sources of records in files.
//!
//! | format | source | access | feature |
//! |---|---|---|---|
//! | text, a record per line | [`Lines`] | by number | |
//! | JSON Lines | [`Jsonl`] | by number | |
//! | text and JSON Lines from standard input | [`TextStream`] | in order | |
//! | text and JSON Lines in `.gz`, `.zst` and `.lz4` | [`TextStream`] | in order | `compress` |
//! | CSV, TSV and the like | [`Csv`] | by number | `csv` |
//! | CSV and TSV in `.gz`, `.zst` and `.lz4` | [`CsvStream`] | in order | `csv`, `compress` |
//! | token ids: `.bin`, `.npy` | [`Tokens`] | crops by number, consecutive or random | |
//! | NumPy: `.npy` | [`Npy`], written by [`NpyWriter`] | rows by number | |
//! | NumPy: `.npz` | [`Npz`], [`NpzRows`] | arrays by name, rows by number | `compress` |
//! | ArrayRecord | [`ArrayRecord`] | by number | `array_record` |
//! | Megatron: `.bin` and `.idx` | [`Megatron`], [`MegatronSamples`] | sequences, documents or training samples by number | |
//! | safetensors | [`Safetensors`], written by [`SafetensorsWriter`] | files or rows by number | `safetensors` |
//! | Bagz | [`Bagz`] | by number | `bagz` |
//! | TFRecord | [`TfRecord`] | by number | `tf_record` |
//! | TFRecord in gzip and zlib | [`TfRecordStream`] | in order | `tf_record` |
//! | Parquet | [`Parquet`] | rows by number | `parquet` |
//! | Arrow: IPC files and streams, Feather, folders of Hugging Face | [`Arrow`] | rows by number | `arrow` |
//! | `tf.train.Example` and `SequenceExample` in the records of another source | [`Examples`] | as the records | |
//! | WebDataset, read and written | [`WebDataset`] | by number | `webdataset` |
//! | WebDataset in gzip, zstd and LZ4 | [`WebDatasetStream`] | in order | `webdataset` |
//! | MDS, read and written | [`Mds`] | by number | `mds` |
//!
//! The functions of the crate root, such as [`jsonl`](crate::jsonl()), open files as datasets, with default options.
//! Sources with access by number implement [`RandomAccess`](crate::dataset::map::RandomAccess), and
//! [`Source::new`](crate::dataset::map::Source::new) converts them into datasets. Crops and streams are already
//! datasets. Paths may be files, globs, folders, URLs of [stores](crate::store) or lists of these: see [`find`].
//!
//! # Guarantees
//! - Reading is pure: record `i` depends only on the files and the options.
//! - Damaged files cause errors with file and place, and no panics. Allocations are bounded by the data that is
//!   present.
//! - The identity of a source in a checkpoint consists of names, sizes and hashes, without folders. Files may therefore
//!   be moved.
//!
//! Files are mapped: see [`Mapping`] for the rules on changing them.

mod abreast;
#[cfg(feature = "array_record")]
mod array_record;
#[cfg(feature = "columns")]
pub(crate) mod arrow;
#[cfg(feature = "arrow")]
pub(crate) mod arrow_ipc;
mod bad_shards;
#[cfg(feature = "bagz")]
mod bagz;
mod braces;
pub(crate) mod checksums;
mod columns;
#[cfg(any(
    feature = "arrow",
    feature = "parquet",
    feature = "riegeli",
    all(feature = "image", any(feature = "mds", feature = "webdataset"))
))]
pub(crate) mod contained;
pub(crate) mod content;
#[cfg(feature = "csv")]
mod csv;
#[cfg(any(feature = "mds", feature = "webdataset"))]
mod decode;
#[cfg(any(feature = "array_record", feature = "bagz", feature = "mds"))]
mod decompress;
mod delimited;
mod detect;
#[cfg(any(feature = "mds", feature = "webdataset"))]
mod encode;
#[cfg(feature = "spec")]
mod entries;
mod example;
mod file_stream;
mod files;
pub(crate) mod firsts;
mod formats;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub(crate) mod fuzzing;
mod globs;
mod index;
mod index_cache;
mod index_stream;
mod inflate;
mod json;
mod json_array;
mod jsonl;
mod jsonl_writer;
mod lines;
#[cfg(feature = "compress")]
mod lz4_frame;
#[cfg(feature = "mds")]
mod mds;
mod megatron;
mod npy;
#[cfg(feature = "compress")]
mod npz;
mod numbered;
#[cfg(feature = "parquet")]
mod parquet;
mod pieces;
#[cfg(all(feature = "spec", any(feature = "array_record", feature = "bagz", feature = "tf_record")))]
mod record_args;
#[cfg(feature = "safetensors")]
mod safetensors;
mod signs;
mod starts;
mod stdin;
mod text_stream;
#[cfg(feature = "tf_record")]
mod tf_record;
mod token_crops;
mod tokens;
mod tokens_writer;
pub(crate) mod units;
mod utf8;
#[cfg(feature = "webdataset")]
mod webdataset;

/// Exports the items of formats whose features are on.
macro_rules! exports {
    ($($feature:literal: $format:ident { $($item:ident),* $(,)? })*) => {
        $(#[cfg(feature = $feature)]
        pub use self::$format::{$($item),*};)*
    };
}

exports! {
    "arrow": arrow_ipc { Arrow, ArrowCompression, ArrowOptions, ArrowWriter, ArrowWriterOptions, HuggingFaceWriter }
    "parquet": parquet { Condition, Parquet, ParquetCompression, ParquetOptions, ParquetWriter, ParquetWriterOptions }
    "safetensors": safetensors { Safetensors, SafetensorsOptions, SafetensorsWriter, SafetensorsWriterOptions }
    "array_record": array_record {
        ArrayRecord, ArrayRecordOptions, ArrayRecordWriter, ArrayRecordWriterOptions, Compression, Recovery
    }
    "bagz": bagz { Bagz, BagzOptions }
    "csv": csv { Csv, CsvOptions, CsvType }
    "mds": mds { Mds, MdsOptions, MdsWriter, MdsWriterOptions }
    "compress": npz { Npz, NpzRows }
    "tf_record": tf_record {
        ExamplesIter, TfRecord, TfRecordIter, TfRecordOptions, TfRecordStream, TfRecordWriter, TfRecordWriterOptions
    }
    "webdataset": webdataset { WebDataset, WebDatasetIter, WebDatasetOptions, WebDatasetStream, WebDatasetWriter }
}

pub use bad_shards::{Shards, skip_bad_shards};
pub use columns::ColumnNames;
pub(crate) use content::Contents;
pub(crate) use content::size;
#[cfg(all(feature = "csv", feature = "compress"))]
pub use csv::{CsvStream, CsvStreamIter};
pub use detect::detect;
pub(crate) use detect::detect_folder;
#[cfg(feature = "spec")]
pub(crate) use example::stages as example_stages;
pub use example::{
    ExampleParser, Examples, FeatureSpec, FeatureType, FeatureValues, encode_example, encode_sequence_example,
};
pub use file_stream::FileState;
pub use files::{Patterns, find};
pub use formats::Format;
#[cfg(feature = "spec")]
pub(crate) use formats::SOURCES;
pub(crate) use formats::readers;
pub use index_cache::IndexCache;
pub use json::RepeatedNames;
pub use json_array::{JsonArray, JsonArrayOptions};
pub(crate) use jsonl::REPEATED;
pub use jsonl::{Jsonl, JsonlOptions};
pub use jsonl_writer::JsonlWriter;
pub use lines::{Lines, LinesOptions};
#[cfg(feature = "mds")]
pub(crate) use mds::{mds_encoding_is_known, mds_encoding_of, mds_index};
pub use megatron::{
    Megatron, MegatronOptions, MegatronSamples, MegatronSamplesOptions, MegatronSplit, MegatronUnit, MegatronWriter,
    MegatronWriterOptions,
};
pub use npy::{Npy, NpyWriter, NpyWriterOptions};
pub(crate) use stdin::is_piped;
pub(crate) use stdin::refuse as refuse_stdin;
pub use text_stream::{
    JsonLines, JsonlStream, LineParser, LineStream, PlainLines, StreamOptions, TextStream, TextStreamIter,
    TextStreamState,
};
#[cfg(all(feature = "python", feature = "tf_record"))]
pub(crate) use tf_record::TfRecordReader;
pub use token_crops::{Crops, RandomCrops};
pub use tokens::{TokenLayout, TokenType, Tokens};
pub use tokens_writer::TokensWriter;

pub use crate::mmap::{Access, Mapping};
