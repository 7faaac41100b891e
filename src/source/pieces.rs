//! Views of a part of a file, without a copy.

use crate::element::Buffer;
use crate::store::BLOCK;
use std::ops::Range;

/// A view of a part of a file, without a copy.
pub(crate) enum Pieces<'a> {
    /// The whole file, as a single slice.
    All(&'a [u8]),
    /// Blocks of an object. The first and the last block are cut.
    Far { at: u64, end: u64, blocks: Vec<Buffer> },
}

impl<'a> Pieces<'a> {
    /// Returns the range of the file that is covered.
    pub(crate) fn range(&self) -> Range<u64> {
        match self {
            Self::All(bytes) => 0..bytes.len() as u64,
            Self::Far { at, end, .. } => *at..*end,
        }
    }

    /// Returns bytes of the file if they are in a single piece. Pieces meet only at multiples of a [`BLOCK`].
    pub(crate) fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let (piece, at) = match self {
            Self::All(bytes) => (*bytes, 0),
            Self::Far { at, blocks, .. } => {
                let number = range.start / BLOCK;
                let piece = blocks.get(number.checked_sub(at / BLOCK)? as usize)?;
                (piece.as_bytes(), (number * BLOCK).max(*at))
            }
        };
        piece.get(range.start.checked_sub(at)? as usize..range.end.checked_sub(at)? as usize)
    }
}
