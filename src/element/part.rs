//! Elements of consecutive indices, in the form in which evaluation returns them.

use super::many::Many;
use crate::error::Result;

/// The result of an index: an element, nothing (a filter dropped it), or an error.
pub(crate) type Slot<T> = Result<Option<T>>;

/// Elements of consecutive indices, created lazily.
pub(crate) type Rows<T> = Box<dyn ExactSizeIterator<Item = T> + Send>;

/// The results of consecutive indices.
pub(crate) enum Part<T, W> {
    /// A slot for each index.
    Slots(Many<T>),
    /// An element for each index, created on demand.
    Rows(Rows<T>),
    /// A group, and its number of indices, each of which has an element.
    Whole(Result<W>, u64),
}

impl<T, W> Part<T, W> {
    /// Returns the number of indices.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Slots(slots) => slots.len() as u64,
            Self::Rows(rows) => rows.len() as u64,
            Self::Whole(_, len) => *len,
        }
    }
}

#[cfg(all(any(test, fuzzing), feature = "workers", target_os = "linux"))]
impl<T, W> Part<T, W> {
    /// Converts rows to slots.
    pub(crate) fn made(self) -> Self {
        match self {
            Self::Rows(rows) => Self::Slots(rows.map(|item| Ok(Some(item))).collect()),
            part => part,
        }
    }
}
