//! Elements that are not as their keys say.

use super::visit::length;
use crate::element::{Element, Name};
use crate::error::{Error, Result};

/// The error of an element that failed when its key was made.
#[cold]
pub(super) fn failed() -> Error {
    Error::data("its key says that it is bad: it failed when keys were made")
}

/// Checks that the arrays `names` of an element have as many cells as its key says.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) where one has not.
pub(super) fn check_lens(element: &Element, names: &[Name], lens: &[u32]) -> Result<()> {
    for (name, expected) in names.iter().zip(lens) {
        let len = length(element, name)?;
        if len != *expected as usize {
            return Err(stale(&format!("{name:?} has {len} cells, and its key says {expected}")));
        }
    }
    Ok(())
}

/// The error of an element that is not as its key says.
#[cold]
pub(super) fn stale(why: &str) -> Error {
    Error::data(format!("the keys are stale: {why}")).help(
        "make them again with `gristmill index --keys`; functions must give the same of the same record whenever they are called",
    )
}
