//! gristmill feeds training jobs. Datasets compose like iterators, run on any number of threads, resume at the exact
//! element, and report the time of each stage.
//!
//! # The promise
//! Execution never changes the data. The stream is a pure function of (pipeline, seed, position). Its bytes are equal
//! for every executor, every number of threads, and after every resume. `tests/laws/main.rs` checks this on random
//! pipelines.
//!
//! # Random access and streams
//! A [`MapDataset`] is random access and pure; an [`IterDataset`] is an ordered stream with a small state.
//! [`MapDatasetExt::to_iter`] converts the first to the second, and [`Load::loader`] runs the whole pipeline. The
//! [`prelude`] contains all traits with such methods. Names and meanings follow Grain. Deviations, mostly from bugs in
//! Grain, are marked `DIFFERENCE`, with the behaviour of both.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::prelude::*;
//!
//! let pipeline = || Range::new(0, 1000).seed(42).shuffle(None).map(|x| x * 2).to_iter().batch(32);
//!
//! let mut loader = pipeline().loader().threads(2).build()?;
//! let first = loader.next().unwrap()?;
//! assert_eq!(first.len(), 32);
//!
//! // A checkpoint is positions in JSON; it restores into any executor.
//! let resumed = pipeline().loader().resume(loader.state()?).build()?;
//! assert_eq!(loader.collect::<gristmill::Result<Vec<_>>>()?, resumed.collect::<gristmill::Result<Vec<_>>>()?);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # From files on
//! A function of the crate root opens the files of each format, under its name in pipeline files. Formats with named
//! columns take a list of columns, or `..` for all. The types in [`source`] have more options.
//!
//! ```no_run
//! use gristmill::prelude::*;
//!
//! let texts = gristmill::jsonl("corpus/*.jsonl", ["text"])?.shuffle(42).to_iter().batch(32);
//! let packed = gristmill::megatron("corpus/*.idx")?.shuffle(42).to_iter().window_pack(1024).batch(32);
//! # drop((texts, packed));
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # Modules
//! | module | what |
//! |---|---|
//! | [`dataset`] | random access, streams and all combinators |
//! | [`element`] | dynamic elements: a tree of arrays, text and bytes |
//! | [`source`] | files: lines, JSONL, compressed streams, token files, Parquet, ArrayRecord, TFRecord |
//! | [`sink`] | writers of data sets: shards, compressed in the background, published whole |
//! | [`text`] | tokenizers |
//! | [`pack`] | sequences into rows: the kernels under the packing stages |
//! | [`spec`] | pipelines declared in YAML, TOML or JSON |
//! | [`part`] | several hosts: the rows of a global batch for each host |
//! | [`keys`] | facts about elements for planning: files with their counts and lengths, without the elements |
//! | [`exec`], [`Loader`] | executors of a pipeline, and the running pipeline |
//! | [`workers`] | worker processes under a RAM budget: [`mp_prefetch`](workers::mp_prefetch) |
//! | [`device`] | accelerators by the PJRT C API: batches sent ahead |
//! | [`tune`] | tuning while a pipeline runs |
//! | [`report`] | the wait report |
//! | [`consumer`] | consumers of batches: emulated accelerators, and their waits |
//! | [`checkpoint`] | the state of a run |
//! | [`rng`] | counter-based random numbers and index permutations, bit-identical to Grain and NumPy |
//!
//! # Features
//! | feature | default | adds |
//! |---|---|---|
//! | `cli` | yes | the `gristmill` binary |
//! | `spec` | yes | declared pipelines |
//! | `text` | yes | tokenisation with Hugging Face `tokenizers` 1.0 |
//! | `workers` | yes | worker processes (Linux; elsewhere threads do the work) |
//! | `full` | no | all features below, except `python` |
//! | `text-compat` | no | `tokenizers` 0.23, the reference for 1.0 and its fallback if the two differ: see [`text`] |
//! | `top` | no | the live view of a run, `gristmill top` (Linux) |
//! | `compress` | no | `.gz`, `.zst` and `.lz4` streams |
//! | `formats` | no | every format; the table of [`source`] lists the feature of each format |
//! | `riegeli` | no | transposed chunks of ArrayRecord files, through the `riegeli` crate |
//! | `image` | no | JPEG and PNG images in records, decoded to arrays |
//! | `stores` | no | every object store; the table of [`store`] lists the feature of each store |
//! | `pjrt` | no | accelerators by the PJRT C API |
//! | `python` | no | the extension module of the Python package, which maturin builds: see `pyproject.toml` |

#![cfg_attr(docsrs, feature(doc_cfg))]
// A feature gates a crate and the modules that use it, not the single functions that only these modules call.
#![cfg_attr(
    not(all(feature = "full", feature = "python", target_os = "linux")),
    allow(dead_code, unused_imports, reason = "the build with all features checks both")
)]

/// The programs of a page of the site, as doc tests.
#[cfg(all(doctest, feature = "text", feature = "formats", feature = "s3", feature = "workers", target_os = "linux"))]
#[doc = include_str!("../python/docs/rust/index.md")]
struct RustPage;

#[cfg(test)]
extern crate self as gristmill;

#[macro_use]
mod debug;
#[macro_use]
mod impls;
#[macro_use]
mod setters;
pub mod checkpoint;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod consumer;
mod cores;
mod cpu;
pub mod cx;
pub mod dataset;
#[cfg_attr(not(feature = "spec"), allow(dead_code, unused_imports, reason = "pipeline files use descriptions"))]
mod declare;
#[cfg(feature = "text")]
#[doc(hidden)]
pub mod demo;
#[cfg(feature = "pjrt")]
pub mod device;
mod edits;
pub mod element;
mod error;
mod events;
pub mod exec;
mod fork;
#[cfg(all(any(test, fuzzing), feature = "compress"))]
pub mod fuzzing;
pub mod keys;
pub mod ledger;
mod live;
mod loader;
mod machine;
mod mmap;
pub mod pack;
pub mod part;
mod place;
pub mod prelude;
#[cfg(feature = "python")]
mod python;
mod regular;
pub mod report;
pub mod rng;
pub mod sink;
pub mod source;
#[cfg(feature = "spec")]
pub mod spec;
mod startup;
mod stats;
pub mod store;
mod sync;
mod temporary;
#[cfg(feature = "text")]
pub mod text;
pub mod tune;
mod units;
mod varint;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod wire;
#[cfg(all(feature = "workers", target_os = "linux"))]
pub mod workers;

pub use checkpoint::{AcceptedChange, Checkpoint};
pub use cx::Cx;
pub use dataset::{BoxIter, BoxMap, DatasetIterator, IterDataset, IterDatasetExt, MapDataset, MapDatasetExt, Stage};
pub use edits::{EditedMix, Edits};
pub use element::{Array, Batch, Buffer, DType, Element, ElementSpec, Value};
pub use error::{Error, ErrorKind, Result};
pub use exec::{Executor, FailedElements, Runtime};
pub use loader::{Load, Loader, LoaderBuilder};
pub use part::{Deal, Part};
pub use report::Report;
pub use source::readers::*;
