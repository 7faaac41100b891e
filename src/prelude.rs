//! The traits whose methods make and run pipelines, and the options of packing: `use gristmill::prelude::*`.
//!
//! ```
//! use gristmill::dataset::map::Range;
//! use gristmill::prelude::*;
//!
//! let mut loader = Range::new(0, 100).shuffle(42).to_iter().batch(10).loader().threads(2).build()?;
//! assert_eq!(loader.by_ref().count(), 10);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! Functions of the crate root open files, such as [`jsonl`](crate::jsonl) and `parquet`:
//! ```no_run
//! use gristmill::prelude::*;
//! let batches = gristmill::jsonl("corpus/*.jsonl", ["text"])?.shuffle(42).to_iter().batch(32);
//! # drop(batches);
//! # Ok::<(), gristmill::Error>(())
//! ```
//!
//! # Mistakes that do not compile
//! A dataset with random access is not a stream; the error names [`to_iter`](MapDatasetExt::to_iter):
//! ```compile_fail,E0599
//! # use gristmill::prelude::*;
//! let loader = gristmill::jsonl("corpus/*.jsonl", ["text"])?.shuffle(42).loader();
//! # Ok::<(), gristmill::Error>(())
//! ```
//! A dataset that is never read is a warning, here an error:
//! ```compile_fail
//! #![deny(unused_must_use)]
//! # use gristmill::{dataset::map::Range, prelude::*};
//! Range::new(0, 100).shuffle(42);
//! ```
//! Threads evaluate elements, so functions cannot borrow values that may be dropped earlier:
//! ```compile_fail,E0373
//! # use gristmill::{dataset::map::Range, prelude::*};
//! # let ds;
//! # {
//! let words = vec!["oat", "rye"];
//! ds = Range::new(0, 2).map(|i| words.get(i as usize).copied()).to_iter();
//! # }
//! # drop(ds);
//! ```
//! Functions cannot return values that must stay on their thread:
//! ```compile_fail,E0599
//! # use gristmill::{dataset::map::Range, prelude::*};
//! let loader = Range::new(0, 2).map(std::rc::Rc::new).to_iter().loader();
//! ```
//! A builder starts one run:
//! ```compile_fail,E0382
//! # use gristmill::{dataset::map::Range, prelude::*};
//! let builder = Range::new(0, 2).to_iter().loader();
//! let (one, other) = (builder.build()?, builder.build()?);
//! # Ok::<(), gristmill::Error>(())
//! ```
//! A state restores only the kind of pipeline that it was taken from:
//! ```compile_fail,E0308
//! # use gristmill::{Cx, Runtime, dataset::map::Range, prelude::*};
//! let (ds, run) = (|| Range::new(0, 100).to_iter(), Runtime::inline());
//! let state = ds().iter(&run)?.state();
//! ds().window_shuffle(8, 1).iter(&run)?.restore(state, &mut Cx::default())?;
//! # Ok::<(), gristmill::Error>(())
//! ```

pub use crate::dataset::map::RandomAccess;
pub use crate::dataset::{DatasetIterator, IterDataset, IterDatasetExt, MapDataset, MapDatasetExt, Stage};
pub use crate::loader::Load;
pub use crate::pack::{BinPackOptions, ConcatPackOptions, OverLong, Packing, RowSpec, WindowPackOptions};
pub use crate::sink::WriteTo;
#[cfg(feature = "text")]
pub use crate::text::{TokeniseIter, TokeniseMap};
