//! Compiles the slab with loom's locks: `cargo test -p loom-model loom` explores every interleaving of grants and leases.
#![allow(dead_code, unused_imports, reason = "the model uses a part of these files")]

#[path = "../../../src"]
mod gristmill {
    #[macro_use]
    mod debug;
    pub(crate) mod error;
    pub(crate) mod fork;
    pub(crate) mod sync;
    pub(crate) mod units;

    pub(crate) mod element {
        pub(crate) mod buffer;
        mod spare;

        pub(crate) use buffer::{Buffer, BufferMut, Owner};
    }

    pub(crate) mod place {
        /// Prints a path; the crate also hides secrets of URLs, which the model has none of.
        pub(crate) fn shown(path: &std::path::Path) -> std::borrow::Cow<'_, std::path::Path> {
            path.into()
        }
    }

    pub(crate) mod workers {
        pub(crate) mod slab;
    }
}

pub(crate) use error::{Error, ErrorKind, Result};
pub(crate) use gristmill::{element, error, fork, place, sync, units, workers};
