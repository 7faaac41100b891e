//! Parts of a file as they lie in memory.

use std::ops::Range;

#[cfg(feature = "store")]
use crate::element::Buffer;
#[cfg(feature = "store")]
use crate::store::BLOCK;

/// A part of a file as it lies in memory.
pub(crate) enum Pieces<'a> {
    /// All of it, in one piece.
    All(&'a [u8]),
    /// Blocks of an object, the first and the last cut.
    #[cfg(feature = "store")]
    Far { at: u64, end: u64, blocks: Vec<Buffer> },
}

impl<'a> Pieces<'a> {
    /// Returns the range of the file's bytes that they are.
    pub(crate) fn range(&self) -> Range<u64> {
        match self {
            Self::All(bytes) => 0..bytes.len() as u64,
            #[cfg(feature = "store")]
            Self::Far { at, end, .. } => *at..*end,
        }
    }

    /// Bytes of the file, if they lie in one piece: pieces meet only at multiples of a [`BLOCK`].
    pub(crate) fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let (piece, at) = match self {
            Self::All(bytes) => (*bytes, 0),
            #[cfg(feature = "store")]
            Self::Far { at, blocks, .. } => {
                let number = range.start / BLOCK;
                let piece = blocks.get(number.checked_sub(at / BLOCK)? as usize)?;
                (piece.as_bytes(), (number * BLOCK).max(*at))
            }
        };
        piece.get(range.start.checked_sub(at)? as usize..range.end.checked_sub(at)? as usize)
    }
}
