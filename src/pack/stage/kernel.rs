//! Kernels that fill a group: bins, or one row after the other.

use crate::error::Result;
use crate::pack::concat::{ConcatThenSplit, Cursor, Fed};
use crate::pack::group::{GroupPacker, Placed};
use crate::pack::stats::PackStats;
use crate::pack::writer::Group;

/// Kernel that fills a group.
#[derive(Debug)]
pub(super) enum Kernel {
    Bins(GroupPacker),
    Concat(ConcatThenSplit),
}

impl Kernel {
    /// Packs what is left of an element as far as the group goes; `placed` gets the bin of each piece.
    pub(super) fn offer(
        &mut self,
        element: &[&[u8]],
        cursor: &mut Cursor,
        mut placed: impl FnMut(usize),
    ) -> Result<Fed> {
        let packer = match self {
            Self::Concat(packer) => return packer.feed(element, cursor),
            Self::Bins(packer) => packer,
        };
        let first = cursor.single();
        for piece in first..packer.pieces(element, first == 0)? {
            match packer.push_piece(element, piece)? {
                Placed::Bin(bin) => placed(bin),
                Placed::Full => {
                    cursor.set_single(piece);
                    return Ok(Fed::Full);
                }
            }
        }
        Ok(Fed::Taken)
    }

    pub(super) fn finish(&mut self) -> Option<Group> {
        match self {
            Self::Bins(packer) => packer.finish(),
            Self::Concat(packer) => packer.finish(),
        }
    }

    pub(super) fn stats(&self) -> PackStats {
        match self {
            Self::Bins(packer) => packer.stats(),
            Self::Concat(packer) => packer.stats(),
        }
    }
}
