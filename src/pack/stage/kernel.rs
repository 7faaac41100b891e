//! Kernels that fill a group: into bins, or row after row.

use crate::error::Result;
use crate::pack::concat::{ConcatThenSplit, Cursor, Fed};
use crate::pack::group::{GroupPacker, Placed};
use crate::pack::stats::PackStats;
use crate::pack::writer::Group;

/// Part of an element in a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartOf<'a> {
    All,
    /// Number of a piece, for a sequence that is longer than a row.
    Piece(usize),
    /// First cell and number of cells, for each feature.
    Cells(&'a [usize], &'a [usize]),
}

/// Kernel that fills a group.
#[derive(Debug)]
pub(super) enum Kernel {
    Bins(GroupPacker),
    Concat(ConcatThenSplit),
}

impl Kernel {
    /// Packs the rest of an element, up to the end of the group. Calls `placed` with the row of each part.
    pub(super) fn offer(
        &mut self,
        element: &[&[u8]],
        cursor: &mut Cursor,
        mut placed: impl FnMut(usize, PartOf<'_>),
    ) -> Result<Fed> {
        let packer = match self {
            Self::Concat(packer) => {
                return packer.feed_noting(element, cursor, |row, from, takes| placed(row, PartOf::Cells(from, takes)));
            }
            Self::Bins(packer) => packer,
        };
        let (first, pieces) = (cursor.single(), packer.pieces(element, cursor.single() == 0)?);
        for piece in first..pieces {
            match packer.push_piece(element, piece)? {
                Placed::Bin(bin) => placed(bin, if pieces == 1 { PartOf::All } else { PartOf::Piece(piece) }),
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
