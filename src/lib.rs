//! gristmill feeds training jobs.

pub mod element;
mod error;

pub use element::{Array, Batch, Buffer, DType, Element, ElementSpec, Value};
pub use error::{Error, ErrorKind, Result};
