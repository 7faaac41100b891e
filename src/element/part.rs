//! Elements of consecutive indices, as those who evaluate them hand them over.

use super::many::Many;
use crate::error::Result;

/// One index: an element, nothing (a filter dropped it), or an error.
pub(crate) type Slot<T> = Result<Option<T>>;

/// Elements of consecutive indices that are made one by one.
pub(crate) type Rows<T> = Box<dyn ExactSizeIterator<Item = T> + Send>;

/// The result of consecutive indices.
pub(crate) enum Part<T, W> {
    /// A slot for each.
    Slots(Many<T>),
    /// An element for each, made when it is asked for.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "rows come from worker processes")
    )]
    Rows(Rows<T>),
    /// A group of so many indices, all of which had an element, as one.
    Whole(Result<W>, u64),
}

impl<T, W> Part<T, W> {
    /// Indices that it stands for.
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
    /// With rows made into slots.
    pub(crate) fn made(self) -> Self {
        match self {
            Self::Rows(rows) => Self::Slots(rows.map(|item| Ok(Some(item))).collect()),
            part => part,
        }
    }
}
