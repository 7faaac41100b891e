//! Window of a stage: the planner, the waiting sequences, and the rows under construction.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::columns::{Columns, with_cells_of_row};
use super::item::PackItem;
use super::options::WindowPackOptions;
use super::planned::Waiting;
use super::sequences::Sequences;
use crate::dataset::iter::InPlace;
use crate::dataset::plan::StandIn;
use crate::element::{Element, Ragged, Value};
use crate::error::{Error, Result};
use crate::pack::feature::{Feature, piece_range};
use crate::pack::held::HeldState;
use crate::pack::stats::PackStats;
use crate::pack::window::WindowPacker;
use crate::pack::writer::RowWriter;

/// Maximum bytes of a batch that is written in place.
///
/// A larger batch is stacked from its rows, so that memory is allocated only for existing rows.
const MOST_BATCH: usize = 64 << 20;

pub(super) struct Packer {
    pub(super) columns: Columns,
    features: Vec<Feature>,
    pub(super) planner: WindowPacker,
    /// Writer of a single row at a time, or of all rows of a batch.
    writer: RowWriter,
    /// Listed meta features of each row in the batch under construction.
    lists: Vec<Vec<Vec<Value>>>,
    /// Sequences of the window by ordinal, from the oldest on. Includes sequences that are already in a row.
    sequences: Sequences<Slot>,
    /// Values of the listed meta features of each sequence; empty if no feature is listed.
    listed: VecDeque<Vec<Value>>,
    /// Replacement for cells, lists and rows in a plan.
    planned: Option<Waiting>,
    row: Vec<u64>,
    pub(super) lens: Vec<usize>,
}

/// Element whose pieces enter the window.
pub(super) struct Entering<T> {
    pub(super) element: T,
    pub(super) number: u64,
    pub(super) piece: u64,
    pub(super) pieces: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// Whether the sequence is not in a row yet.
    held: bool,
    number: u64,
    piece: u64,
}

impl Packer {
    pub(super) fn learn<T>(options: &WindowPackOptions, restored: &HeldState, first: &T) -> Result<Self>
    where
        T: PackItem,
    {
        let (columns, features) = Columns::learn(&options.rows, first)?;
        let mut planner = WindowPacker::new(&features, options.window)?;
        planner.restore(restored)?;
        let (writer, sequences) = (RowWriter::new(&features, 1)?, Sequences::new(features.len()));
        let (lists, listed, row, lens) = (Vec::new(), VecDeque::new(), Vec::new(), Vec::new());
        let planned = T::IS_PLANNED.then(|| Waiting::new(options.window.window));
        Ok(Self { columns, features, planner, writer, lists, sequences, listed, planned, row, lens })
    }

    /// Returns the number of rows in the batch under construction.
    pub(super) fn waiting(&self) -> usize {
        self.planned.as_ref().map_or(self.lists.len(), |planned| planned.rows.len())
    }

    /// Adds rows without listed values to the window, until the window is full or a row must be split.
    ///
    /// `first` is the element number of the first row. Returns the number of pieces of the row to split, if any.
    /// Adds the number of rows read to `taken`, including a failed row or a row to split.
    pub(super) fn push_rows(
        &mut self,
        rows: &Arc<Ragged>,
        range: Range<usize>,
        first: u64,
        taken: &mut usize,
    ) -> Result<Option<u64>> {
        let is_view = rows.is_view();
        for (row, number) in range.zip(first..) {
            if self.planner.is_full() {
                break;
            }
            *taken += 1;
            let view = is_view.then_some((rows, row));
            let pieces = with_cells_of_row(rows, row, |cells| self.push_whole(cells, view, number))?;
            if pieces > 1 {
                return Ok(Some(pieces));
            }
        }
        Ok(None)
    }

    /// Adds a sequence to the window if it is a single piece. Returns its number of pieces.
    ///
    /// The cells are copied, unless they are given as a row of a `view`.
    #[inline]
    fn push_whole(&mut self, cells: &[&[u8]], view: Option<(&Arc<Ragged>, usize)>, number: u64) -> Result<u64> {
        let Self { features, planner, sequences, lens, .. } = self;
        lens.clear();
        lens.extend(features.iter().zip(cells).map(|(feature, cells)| cells.len() / feature.cell));
        let pieces = planner.pieces(lens)?;
        if pieces == 1 {
            let held = planner.push(lens)?.is_some();
            let slot = Slot { held, number, piece: 0 };
            match view {
                Some((rows, row)) => sequences.push_view(slot, rows, row),
                None => sequences.push(slot, cells.iter().map(|&cells| if held { cells } else { &[] })),
            }
        }
        Ok(pieces as u64)
    }

    /// Like [`push_rows`](Self::push_rows), for planned elements.
    pub(super) fn push_planned(
        &mut self,
        rows: &Ragged,
        range: Range<usize>,
        first: u64,
        taken: &mut usize,
    ) -> Result<Option<u64>> {
        let Self { planner, planned, lens, .. } = self;
        let ids = rows.ids().and_then(|ids| ids.elements.get(range.clone()));
        let (Some(ids), Some(planned)) = (ids, planned) else {
            return Err(Error::state("rows do not identify their elements"));
        };
        for ((row, number), id) in range.zip(first..).zip(ids) {
            if planner.is_full() {
                break;
            }
            *taken += 1;
            lens.clear();
            lens.extend(rows.columns().iter().map(|column| column.len_of(row)));
            match planner.pieces(lens)? {
                0 => {}
                1 => planned.enter(planner.push(lens)?, *id, number, None),
                pieces => return Ok(Some(pieces as u64)),
            }
        }
        Ok(None)
    }

    /// Adds a piece of an element to the window.
    pub(super) fn push<T: PackItem>(&mut self, entering: &Entering<T>) -> Result<()> {
        let Self { columns, features, planner, sequences, listed, planned, lens, .. } = self;
        let Entering { ref element, number, piece, pieces } = *entering;
        let values = if columns.lists() { Some(columns.listed(element)?) } else { None };
        let id = element.stand_in().map(StandIn::id).transpose()?;
        element.with_cells(&columns.names, |cells| {
            let cells = features.iter().zip(cells).map(|(feature, cells)| {
                let range = piece_range(feature, cells.len() / feature.cell, piece as usize);
                &cells[range.start * feature.cell..range.end * feature.cell]
            });
            lens.clear();
            lens.extend(features.iter().zip(cells.clone()).map(|(feature, cells)| cells.len() / feature.cell));
            let ordinal = planner.push(lens)?;
            if let (Some(planned), Some(id)) = (planned, id) {
                planned.enter(ordinal, id, number, (pieces != 1).then_some(piece as u32));
            } else {
                let held = ordinal.is_some();
                let cells = cells.map(|cells| if held { cells } else { &[] });
                sequences.push(Slot { held, number, piece }, cells);
            }
            listed.extend(values);
            Ok(())
        })?
    }

    /// Plans the next row and writes it after the rows under construction. Returns `false` if there is no row.
    pub(super) fn write_row(&mut self, ended: bool) -> Result<bool> {
        let oldest = self.planner.oldest();
        let Some(row) = self.planner.next_row(ended) else { return Ok(false) };
        if let Some(planned) = &mut self.planned {
            planned.end_row(row);
            return Ok(true);
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.write(oldest)?;
        let gone = (self.planner.oldest() - oldest) as usize;
        self.sequences.forget(gone);
        self.listed.drain(..gone.min(self.listed.len()));
        Ok(true)
    }

    /// Returns the element and piece of the oldest sequence in the window; `None` if the window is empty.
    pub(super) fn front(&self) -> Option<(u64, u64)> {
        match &self.planned {
            Some(planned) if !self.planner.is_empty() => Some(planned.front(self.planner.oldest())),
            Some(_) => None,
            None => self.sequences.oldest().map(|slot| (slot.number, slot.piece)),
        }
    }

    /// Writes the planned row. `oldest` is the ordinal of the first entry in `sequences`.
    fn write(&mut self, oldest: u64) -> Result<()> {
        let (number, mut lists) = (self.lists.len(), self.columns.no_lists());
        self.row.iter().for_each(|ordinal| self.sequences.touch((ordinal - oldest) as usize));
        for ordinal in &self.row {
            let at = (ordinal - oldest) as usize;
            if !self.sequences.about_mut(at).is_some_and(|slot| std::mem::take(&mut slot.held)) {
                return Err(Error::state(format!("sequence {ordinal} is not held")));
            }
            self.sequences.with(at, |cells| self.writer.write(number, cells, 0))?;
            if let Some(listed) = self.listed.get_mut(at) {
                lists.iter_mut().zip(listed.drain(..)).for_each(|(list, value)| list.push(value));
            }
        }
        self.lists.push(lists);
        Ok(())
    }

    /// Returns the planned rows.
    pub(super) fn planned(&mut self) -> Option<InPlace<StandIn>> {
        self.planned.as_mut()?.rows.take_batch()
    }

    /// Returns the written row as an element.
    pub(super) fn written_row(&mut self) -> Result<Option<InPlace<Element>>> {
        let (group, lists) = (self.writer.finish(), self.lists.pop().unwrap_or_default());
        let Some(group) = group else { return Ok(None) };
        let batch = self.columns.row(&group.arena, 0, lists)?;
        Ok(Some(InPlace { len: 1, bytes: batch.nbytes(), batch }))
    }

    /// Returns the written rows as a batch.
    pub(super) fn written_rows(&mut self) -> Result<Option<InPlace<Element>>> {
        let Some(group) = self.writer.finish() else { return Ok(None) };
        let (len, lists) = (group.rows.len(), std::mem::take(&mut self.lists));
        let batch = self.columns.rows(&group.arena, len, &lists)?;
        Ok(Some(InPlace { len, bytes: batch.nbytes(), batch }))
    }

    /// Returns true if batches of `rows` rows are written in place. Resizes the writer if it is empty.
    pub(super) fn batches(&mut self, rows: usize) -> Result<bool> {
        if self.planned.is_some() {
            return Ok(true);
        }
        let row_bytes = self.writer.bytes() / self.writer.rows();
        let is_small = row_bytes.checked_mul(rows).is_some_and(|bytes| bytes <= MOST_BATCH);
        if self.writer.rows() != rows && rows > 0 && is_small && self.writer.is_empty() {
            let stats = self.writer.stats();
            self.writer = RowWriter::new(&self.features, rows)?.count_from(stats);
        }
        Ok(self.writer.rows() == rows)
    }

    /// Returns counts: splits and drops from the planner, everything else from the writer.
    /// The planner counts everything in a plan.
    pub(super) fn stats(&self) -> PackStats {
        if self.planned.is_some() {
            return self.planner.stats();
        }
        let PackStats { splits, dropped, dropped_tokens, .. } = self.planner.stats();
        PackStats { splits, dropped, dropped_tokens, ..self.writer.stats() }
    }
}
