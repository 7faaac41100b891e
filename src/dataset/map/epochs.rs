//! Global indices. They continue over epochs. Every stage has a separate epoch length.

use crate::error::{Error, Result};

/// Splits a global index into its epoch and the index in that epoch; `None` if an epoch has no elements.
#[inline]
pub(super) fn split(index: u64, len: u64) -> Option<(u64, u64)> {
    if index < len { Some((0, index)) } else { Some((index.checked_div(len)?, index % len)) }
}

/// Returns the global index of element `at` of `epoch`, with `len` elements per epoch.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) if the result does not fit in 64 bits.
#[inline]
pub(super) fn join(epoch: u64, len: u64, at: u64) -> Result<u64> {
    if epoch == 0 {
        return Ok(at);
    }
    epoch.checked_mul(len).and_then(|start| start.checked_add(at)).ok_or_else(|| too_far(epoch, len))
}

/// Returns the first index of the epoch of `index`.
pub(super) fn start(index: u64, len: u64) -> Option<u64> {
    split(index, len).map(|(_, at)| index - at)
}

#[cold]
pub(super) fn too_far(epoch: u64, len: u64) -> Error {
    Error::config(format!("epoch {epoch} of a dataset of {len} elements is past the last index, {}", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_an_epoch_and_a_place_in_it() {
        assert_eq!(split(2, 3), Some((0, 2)));
        assert_eq!(split(7, 3), Some((2, 1)));
        assert_eq!(split(0, 0), None);
        assert_eq!(join(2, 3, 1).unwrap(), 7);
        assert_eq!(join(0, u64::MAX, 5).unwrap(), 5);
        assert!(join(3, 1 << 63, 0).is_err());
        assert!(join(1, u64::MAX, 1).is_err());
    }
}
