//! Errors of a slab.

use super::extents::ExtentId;
use crate::error::{Error, ErrorKind};

/// Reason why an extent cannot be used as requested. Only a bug, or a worker that sends invalid messages, causes these
/// errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SlabError {
    /// The extent was returned since, or its present use does not allow the step.
    #[error("{0} are not granted any more")]
    Stale(ExtentId),
    /// Lease on an extent of the reserve.
    #[error("{0} belong to the reserve, which is copied out and never leased")]
    Reserve(ExtentId),
    /// The reported number of written bytes exceeds the extent.
    #[error("{used} bytes are said to be written to an extent of {limit}")]
    Overrun { used: usize, limit: usize },
    /// Extent that is not inside the slab.
    #[error("{extent} do not lie in a slab of {pages} pages")]
    Outside { extent: ExtentId, pages: usize },
    /// Extent that overlaps an extent already open in this process.
    #[error("{extent} overlap {held}, which are being written")]
    Overlap { extent: ExtentId, held: ExtentId },
    /// Extent to which the system refuses access.
    #[error("{0} cannot be made accessible")]
    Unopened(ExtentId),
    /// Use in a process that was forked from the slab's process.
    #[error("this process was forked from process {parent}, to which the workers belong")]
    Forked { parent: u32 },
}

impl SlabError {
    /// Converts to the crate's error. There is no `From`: another conversion for `?` would leave callers' closures
    /// untyped.
    #[cold]
    pub(crate) fn into_error(self) -> Error {
        if let Self::Forked { .. } = self {
            Error::config(self.to_string()).help("start a separate loader in the forked process").caused_by(self)
        } else {
            Error::new(ErrorKind::Worker, self.to_string()).caused_by(self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_give_value_and_limit() {
        let extent = ExtentId { page: 12, pages: 4, generation: 7 };
        let outside = SlabError::Outside { extent, pages: 10 }.into_error();
        assert_eq!(outside.to_string(), "pages 12..16 of grant 7 do not lie in a slab of 10 pages");
        assert_eq!(outside.kind(), ErrorKind::Worker);
        let overrun = SlabError::Overrun { used: 70_000, limit: 65_536 }.to_string();
        assert_eq!(overrun, "70000 bytes are said to be written to an extent of 65536");
        let forked = SlabError::Forked { parent: 9 }.into_error();
        assert_eq!(forked.to_string(), "this process was forked from process 9, to which the workers belong");
        assert!(forked.kind() == ErrorKind::Config && forked.help_text().is_some());
    }
}
