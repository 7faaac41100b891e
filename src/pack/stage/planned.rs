//! Rows in a plan: the elements that each packed row contains.

use super::kernel::PartOf;
use crate::cx::ElementId;
use crate::dataset::plan::PlannedRows;

/// Sequences of a window, and the rows of a batch that are planned from them.
pub(super) struct Waiting {
    /// Ring of sequences, indexed by ordinal.
    ring: Box<[Sequence]>,
    pub(super) rows: PlannedRows,
}

/// Sequence of a window.
#[derive(Clone, Copy, Default)]
struct Sequence {
    /// Element that contains the sequence.
    id: ElementId,
    /// Number of the element.
    number: u64,
    /// Number of the piece; `None` if the sequence is the whole element.
    piece: Option<u32>,
}

impl Waiting {
    /// Creates room for a window of `window` sequences.
    pub(super) fn new(window: usize) -> Self {
        let ring = vec![Sequence::default(); window.next_power_of_two()].into();
        Self { ring, rows: PlannedRows::default() }
    }

    #[inline]
    fn place(&self, ordinal: u64) -> usize {
        // The length of the ring is a power of two.
        ordinal as usize & (self.ring.len() - 1)
    }

    /// Adds a sequence. `ordinal` is `None` if the sequence is already in a row of a restored state.
    #[inline]
    pub(super) fn enter(&mut self, ordinal: Option<u64>, id: ElementId, number: u64, piece: Option<u32>) {
        if let Some(ordinal) = ordinal {
            let place = self.place(ordinal);
            self.ring[place] = Sequence { id, number, piece };
        }
    }

    /// Returns the number of the element that contains the sequence, and the number of the piece.
    pub(super) fn front(&self, ordinal: u64) -> (u64, u64) {
        let Sequence { number, piece, .. } = self.ring[self.place(ordinal)];
        (number, piece.unwrap_or(0).into())
    }

    /// Adds a row of the sequences with these ordinals.
    #[inline]
    pub(super) fn end_row(&mut self, ordinals: &[u64]) {
        for &ordinal in ordinals {
            match self.ring[self.place(ordinal)] {
                Sequence { id, piece: None, .. } => self.rows.push(id, []),
                Sequence { id, piece: Some(piece), .. } => self.rows.push(id, [piece.into()]),
            }
        }
        self.rows.end_row();
    }
}

/// Members of the bins of a group.
#[derive(Default)]
pub(super) struct Bins(Vec<PlannedRows>);

impl Bins {
    /// Adds a part of element `id` to a bin.
    #[inline]
    pub(super) fn push(&mut self, bin: usize, id: ElementId, part: PartOf<'_>) {
        if self.0.len() <= bin {
            self.0.resize_with(bin + 1, PlannedRows::default);
        }
        let row = &mut self.0[bin];
        match part {
            PartOf::All => row.push(id, []),
            PartOf::Piece(piece) => row.push(id, [piece as u64]),
            PartOf::Cells([from], [takes]) => row.push(id, [*from as u64, *takes as u64]),
            PartOf::Cells(from, takes) => row.push(id, from.iter().chain(takes).map(|&cells| cells as u64)),
        }
    }

    /// Appends the members of a bin to `rows` as a row.
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
