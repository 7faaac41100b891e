//! What packing keeps of stand-ins: which elements they stand for.

use super::kernel::PartOf;
use crate::dataset::plan::PlannedRows;
use crate::element::Tag;

/// The sequences of a window, and the rows of a batch that are planned out of them.
pub(super) struct Waiting {
    /// Each at the place that its ordinal gives it.
    ring: Box<[Sequence]>,
    pub(super) rows: PlannedRows,
}

/// A sequence of a window.
#[derive(Clone, Copy, Default)]
struct Sequence {
    /// Which element it is of.
    tag: Tag,
    /// The number of that element.
    number: u64,
    /// The number of its piece, if it is not all of that.
    piece: Option<u32>,
}

impl Waiting {
    /// Room for a window of so many sequences.
    pub(super) fn new(window: usize) -> Self {
        let ring = vec![Sequence::default(); window.next_power_of_two()].into();
        Self { ring, rows: PlannedRows::default() }
    }

    #[inline]
    fn place(&self, ordinal: u64) -> usize {
        // A power of two.
        ordinal as usize & (self.ring.len() - 1)
    }

    /// Takes a sequence in; one that a restored state has in a row already has no ordinal.
    #[inline]
    pub(super) fn enter(&mut self, ordinal: Option<u64>, tag: Tag, number: u64, piece: Option<u32>) {
        if let Some(ordinal) = ordinal {
            let place = self.place(ordinal);
            self.ring[place] = Sequence { tag, number, piece };
        }
    }

    /// The element that this sequence is of, and the number of its piece.
    pub(super) fn front(&self, ordinal: u64) -> (u64, u64) {
        let Sequence { number, piece, .. } = self.ring[self.place(ordinal)];
        (number, piece.unwrap_or(0).into())
    }

    /// Makes a row of these sequences.
    #[inline]
    pub(super) fn end_row(&mut self, ordinals: &[u64]) {
        for &ordinal in ordinals {
            match self.ring[self.place(ordinal)] {
                Sequence { tag, piece: None, .. } => self.rows.push(tag, []),
                Sequence { tag, piece: Some(piece), .. } => self.rows.push(tag, [piece.into()]),
            }
        }
        self.rows.end_row();
    }
}

/// The members of the bins of a group.
#[derive(Default)]
pub(super) struct Bins(Vec<PlannedRows>);

impl Bins {
    /// Adds a part of the element that `tag` says to a bin.
    #[inline]
    pub(super) fn push(&mut self, bin: usize, tag: Tag, part: PartOf<'_>) {
        if self.0.len() <= bin {
            self.0.resize_with(bin + 1, PlannedRows::default);
        }
        let row = &mut self.0[bin];
        match part {
            PartOf::All => row.push(tag, []),
            PartOf::Piece(piece) => row.push(tag, [piece as u64]),
            PartOf::Cells([from], [takes]) => row.push(tag, [*from as u64, *takes as u64]),
            PartOf::Cells(from, takes) => row.push(tag, from.iter().chain(takes).map(|&cells| cells as u64)),
        }
    }

    /// Makes a row of a bin.
    pub(super) fn row(&self, bin: usize, rows: &mut PlannedRows) {
        if let Some(row) = self.0.get(bin) {
            rows.extend(row);
        }
        rows.end_row();
    }

    /// Empties all bins.
    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(PlannedRows::clear);
    }
}
