//! gristmill feeds training jobs.

pub mod checkpoint;
pub mod cx;
pub mod dataset;
#[cfg(feature = "text")]
pub mod demo;
pub mod element;
mod error;
pub mod exec;
mod loader;
pub mod pack;
pub mod report;
pub mod rng;
#[cfg(feature = "spec")]
pub mod spec;
#[cfg(feature = "text")]
pub mod text;

pub use checkpoint::Checkpoint;
pub use cx::Cx;
pub use dataset::{BoxIter, BoxMap, DatasetIterator, IterDataset, MapDataset, Stage};
pub use element::{Array, Batch, Buffer, DType, Element, ElementSpec, Value};
pub use error::{Error, ErrorKind, Result};
pub use exec::{Executor, Runtime};
pub use loader::{Loader, LoaderBuilder};
pub use report::Report;
