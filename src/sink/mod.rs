//! Data sets written: a stream of elements into shards of a format, compressed in the background, published whole.
//!
//! A [`Sink`] takes elements, one by one, from whoever makes them: features, activations, token ids. They wait in memory, within a
//! budget, while threads encode and compress them; whoever writes goes on at once, and waits only where the budget is used up.
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
//! # What a folder holds
//! Shards named `PREFIX-00000.ENDING`, and `manifest.json`: see [`Manifest`]. A shard has its name only once it is whole and on
//! the disk, and counts only once the manifest lists it: a kill at any moment leaves a folder that is right as it is, and
//! from which [`resume`](SinkOptions::resume) goes on without a record lost or repeated.
//!
//! # Formats
//! | format | a shard | holds | compression | feature |
//! |---|---|---|---|---|
//! | `jsonl` | `.jsonl` | numbers, text, lists, trees | the file: none, zstd, gzip, lz4 | |
//! | `parquet` | `.parquet` | everything | pages: zstd, none, snappy, lz4, gzip, brotli | `parquet` |
//! | `arrow` | `.arrow`, an IPC file | everything | record batches: none, zstd, lz4 | `arrow` |
//! | `hugging_face` | `.arrow`, a stream; `state.json`, `dataset_info.json` | everything | none | `arrow` |
//! | `array_record` | `.array_record` | a field of bytes or text, else a `tf.train.Example`, or [`SequenceExample`](SinkOptions::sequences) | chunks: zstd, none, brotli, snappy | `array_record` |
//! | `tfrecord` | `.tfrecord` | the same | the file: none, gzip | `tf_record` |
//! | `webdataset` | `.tar` | a file for each field | the file: none, zstd, gzip, lz4 | `webdataset` |
//! | `mds` | `.mds`; `index.json` | everything | the file: none, zstd, gzip, brotli, snappy | `mds` |
//! | `npy` | `.npy` | an array of each element, the rows of one | none | |
//! | `safetensors` | `.safetensors` | arrays, the rows of tensors | none | `safetensors` |
//! | `tokens` | `.bin` of llm.c or nanoGPT | token ids | none | |
//! | `megatron` | `.bin` and `.idx` | token ids | none | |
//!
//! # Columns
//! Parquet, Arrow, Hugging Face's folders, MDS, WebDataset, NumPy and safetensors have columns, which are the same in all shards of a folder: those
//! of its first records, 1,024 of them or 8 MiB, or those that a [`Schema`] declares. The manifest keeps them, so that a resume goes on
//! with them. A sink that is stopped before there are as many writes its whole shards with the columns so far, and keeps the records
//! beside them: a resume looks at more, and writes them again. A record that does not fit is an error that names it, the column, and what it was to hold.
//!
//! Files that are compressed whole are so in sections of a fixed size, by several threads: frames of zstd (8 MiB at level 3), members of
//! gzip (4 MiB), blocks in one frame of LZ4 (4 MiB). All of them are what the formats allow, and what `zstd`, `gzip`, `lz4` and Python's
//! packages read. Files of texts in no order are larger by less than 1 % for that; those whose neighbours are alike by some more.
//!
//! A folder has one writer: a second is refused, by a lock on this machine, and in a store as [it can](crate::store#writers).
//!
//! # Determinism
//! The ends of shards follow from the records and the options alone, and what is in them, too: a run that was killed and resumed
//! leaves the same bytes as one that was not, whatever the threads and the budget, for one version of the codecs.

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
pub use report::SinkReport;
pub use schema::Schema;
#[cfg(all(feature = "cli", feature = "columns"))]
pub(crate) use writers::kinds;
