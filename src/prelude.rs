//! The traits whose methods make and run pipelines: `use gristmill::prelude::*`.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::prelude::*;
//!
//! let mut loader = Range::new(0, 100).shuffle(42).to_iter().batch(10).loader().threads(2).build()?;
//! assert_eq!(loader.by_ref().count(), 10);
//! # Ok::<(), gristmill::Error>(())
//! ```

pub use crate::dataset::{DatasetIterator, IterDataset, MapDataset, Stage};
pub use crate::loader::Load;
pub use crate::pack::Packing;
pub use crate::sink::WriteTo;
#[cfg(feature = "text")]
pub use crate::text::{TokeniseIter, TokeniseMap};
