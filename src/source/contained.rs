//! Foreign decoders on bytes of unknown quality: their panics become errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

/// Runs `work`; a panic in it becomes an error.
pub(crate) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::data(format!("the decoder gave up on damaged data: {}", text.unwrap_or("(no message)"))))
    })
}
