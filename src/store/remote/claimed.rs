//! Memory for bodies of claimed length.

use crate::element::Buffer;
use crate::element::room::{share, used};
use crate::element::spare::{is_large, rounded};
use crate::error::{Error, ErrorKind, Result};
use crate::units::Bytes;

/// Memory for bytes whose length is only claimed, by a file or a server. It grows as bytes arrive.
///
/// A claim may be wrong by any amount. At most 16 MiB is allocated for a claim alone, and at most twice the bytes that
/// have arrived.
pub(super) struct Room {
    bytes: Vec<u8>,
    claimed: usize,
}

/// Bytes allocated for a claim alone, at most.
const BELIEVED: usize = 16 << 20;

impl Room {
    /// Returns room for `claimed` bytes, which may never arrive.
    pub(super) fn new(claimed: u64) -> Result<Self> {
        let Ok(len) = usize::try_from(claimed) else { return Err(too_much(claimed, 0)) };
        let mut room = Self { bytes: used(len).unwrap_or_default(), claimed: len };
        room.reserve(len.min(BELIEVED))?;
        Ok(room)
    }

    /// Adds the next bytes.
    pub(super) fn fill(&mut self, piece: &[u8]) -> Result<()> {
        self.reserve(self.bytes.len().saturating_add(piece.len()))?;
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Allocates memory for `need` bytes. Doubles the capacity to avoid repeated growth, up to the claimed length.
    fn reserve(&mut self, need: usize) -> Result<()> {
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        if need <= capacity {
            return Ok(());
        }
        let whole = if is_large(self.claimed) { rounded(self.claimed) } else { self.claimed };
        let size = capacity.saturating_mul(2).max(need).min(whole.max(need));
        // A pooled size, if the whole claim is below the limit for claims.
        let size = if whole <= BELIEVED { whole.max(need) } else { size };
        self.bytes.try_reserve_exact(size - len).map_err(|_| too_much(self.claimed as u64, len))
    }

    /// Returns the bytes as a shared [`Buffer`], like [`share`].
    pub(super) fn share(self) -> Buffer {
        share(self.bytes)
    }
}

#[cold]
fn too_much(claimed: u64, here: usize) -> Error {
    Error::new(
        ErrorKind::Io,
        format!("no memory for {}, of which {} were received", Bytes(claimed), Bytes(here as u64)),
    )
    .help("the file or its server claims an impossible length, or this process needs more memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::spare::LEAST;

    #[test]
    fn memory_is_taken_for_what_came_and_not_for_what_is_claimed() {
        for claimed in [1 << 40, 1 << 62, u64::MAX] {
            let mut room = Room::new(claimed).unwrap();
            (0..40).for_each(|_| room.fill(&[7; 1 << 20]).unwrap());
            assert!(room.bytes.capacity() <= 80 << 20, "{} bytes for 40 MiB", room.bytes.capacity());
            assert_eq!(room.share().len(), 40 << 20);
        }
        // More memory than any process has.
        let error = Room::new(1 << 40).and_then(|mut room| room.reserve(1 << 62)).unwrap_err();
        assert_eq!(error.message(), "no memory for 1 TiB, of which 0 B were received");
        for len in [0, 10, LEAST - 1, LEAST + 1, BELIEVED + 1, 3 * BELIEVED + 5] {
            let mut room = Room::new(len as u64).unwrap();
            vec![1; len].chunks(128 << 10).for_each(|piece| room.fill(piece).unwrap());
            assert!(room.bytes.capacity() <= rounded(len).max(LEAST), "{} for {len}", room.bytes.capacity());
            assert_eq!(room.share().len(), len);
        }
    }
}
