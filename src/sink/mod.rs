//! Writes a stream of elements as shards of a data set, compressed in the background and published whole.
//!
//! A [`Sink`] accepts elements such as features, activations or token ids. Elements wait in memory, within a budget,
//! while threads encode and compress them. A write returns immediately, and blocks only if the budget is used up.
//!
//! ```
//! use gristmill::sink::{Sink, SinkFormat};
//! use gristmill::prelude::*;
//! use gristmill::{Array, Element, dataset::map::Range};
//! # let folder = std::env::temp_dir().join(format!("gristmill-doc-sink-{}", std::process::id()));
//! let mut sink = Sink::options(SinkFormat::Jsonl).shard_records(40).open(&folder)?;
//! for step in 0..100i64 {
//!     sink.write(Element::new().with("step", Array::scalar(step)))?;
//! }
//! let report = sink.finish()?;
//! assert_eq!((report.records, report.shards), (100, 3));
//! # std::fs::remove_dir_all(&folder).unwrap();
//!
//! // The same at the end of a pipeline, which goes on where it was after it was stopped at any moment.
//! let numbers = || Range::new(0, 100).map(|i| Element::new().with("step", Array::scalar(i))).to_iter();
//! let options = Sink::options(SinkFormat::Jsonl).shard_records(40).resume(true);
//! assert_eq!(numbers().write_to(options.clone(), &folder)?.records, 100);
//! assert_eq!(numbers().write_to(options, &folder)?.resumed, Some(100));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # Contents of a folder
//! A folder contains shards named `PREFIX-00000.ENDING`, and `manifest.json`: see [`Manifest`]. A shard gets its name
//! only after it is complete and on the disk. It counts only after the manifest lists it. A kill at any moment leaves a
//! valid folder, from which [`resume`](SinkOptions::resume) continues without losing or repeating a record.
//!
//! # Formats
//! | format | a shard | holds | compression | feature |
//! |---|---|---|---|---|
//! | `jsonl` | `.jsonl` | numbers, text, lists, trees | the file: none, zstd, gzip, lz4 | |
//! | `parquet` | `.parquet` | everything | pages: zstd, none, snappy, lz4, gzip, brotli | `parquet` |
//! | `arrow` | `.arrow`, an IPC file | everything | record batches: none, zstd, lz4 | `arrow` |
//! | `hugging_face` | `.arrow`, a stream; `state.json`, `dataset_info.json` | everything | none | `arrow` |
//! | `array_record` | `.array_record` | a field of bytes or text, else a `tf.train.Example`, or [`SequenceExample`](SinkOptions::sequences) | chunks: zstd, none, brotli, snappy | `array_record` |
//! | `tfrecord` | `.tfrecord` | as `array_record` | the file: none, gzip | `tf_record` |
//! | `webdataset` | `.tar` | a file for each field | the file: none, zstd, gzip, lz4 | `webdataset` |
//! | `mds` | `.mds`; `index.json` | everything | the file: none, zstd, gzip, brotli, snappy | `mds` |
//! | `npy` | `.npy` | an array per element, as the rows of an array | none | |
//! | `safetensors` | `.safetensors` | arrays, the rows of tensors | none | `safetensors` |
//! | `tokens` | `.bin` of llm.c or nanoGPT | token ids | none | |
//! | `megatron` | `.bin` and `.idx` | token ids | none | |
//!
//! # Columns
//! Parquet, Arrow, Hugging Face's folders, MDS, WebDataset, NumPy and safetensors have columns. All shards of a folder
//! have the same columns. They are inferred from the first records, 1,024 of them or 8 MiB, or declared by a
//! [`Schema`]. The manifest keeps the columns, and a resume continues with them.
//!
//! A sink that is stopped before it has enough records writes its whole shards with the columns inferred so far. The
//! records are kept beside the shards. A resume infers the columns from more records and writes these shards again.
//! A record that does not fit the columns is an error with the record, the column and the expected type.
//!
//! Files that are compressed whole consist of sections of a fixed size, compressed by several threads. Sections are
//! frames of zstd (8 MiB at level 3), members of gzip (4 MiB), or blocks in a single frame of LZ4 (4 MiB). The formats
//! allow such files, and `zstd`, `gzip`, `lz4` and Python's packages read them. Files of texts in random order grow by
//! less than 1 %; files whose neighbouring texts are similar grow slightly more.
//!
//! A folder has a single writer. A second writer is refused by a lock on this machine, and in a store by [an
//! object](crate::store#writers).
//!
//! # Determinism
//! The ends and the contents of shards depend only on the records and the options. A run that was killed and resumed
//! leaves the same bytes as an uninterrupted run. The bytes do not depend on the threads or the budget, for a given
//! version of the codecs.

mod budget;
mod check;
mod compression;
mod crew;
mod cut;
mod first;
mod folder;
mod format;
mod intake;
mod manifest;
mod options;
mod pipeline;
mod plan;
mod publish;
mod push;
mod report;
mod resume;
mod schema;
#[cfg(feature = "compress")]
mod sections;
mod shard_file;
mod task;
#[cfg(test)]
mod tests;
mod writers;

pub use compression::Compression;
pub use format::SinkFormat;
pub use manifest::{FORMAT, FileEntry, MANIFEST, Manifest, Origin, ShardEntry};
pub use options::SinkOptions;
pub use pipeline::WriteTo;
pub use push::Sink;
pub use report::{SinkReport, SinkTimes, SinkWork};
pub use schema::Schema;
#[cfg(all(feature = "cli", feature = "columns"))]
pub(crate) use writers::kinds;
