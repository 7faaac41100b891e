//! gristmill feeds training jobs.

mod error;

pub use error::{Error, ErrorKind, Result};
