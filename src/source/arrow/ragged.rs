//! Rows of columns without elements: the length of each row, and the places of its cells.

use arrow_buffer::ArrowNativeType;

use super::column::{Column, Numbers, Offsets};
use super::value::Memory;
use crate::element::{Buffer, Ragged, RaggedColumn, Run};

/// Column whose rows are placed in any order, span by span.
#[derive(Default)]
pub(super) struct RaggedMut {
    column: Option<RaggedColumn>,
    rows: usize,
    /// Cells that were copied.
    copied: Vec<u8>,
    /// Places of copied cells: row, first byte in `copied`, number of cells.
    waiting: Vec<(usize, usize, usize)>,
}

impl RaggedMut {
    /// Creates a column of `rows` rows.
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Places runs of rows of `column`. Returns `None` if a row is null or is not numbers of the type and inner shape
    /// of the rows placed before.
    pub(super) fn place_runs(&mut self, column: &Column, runs: &[Run], memory: Memory) -> Option<()> {
        let (numbers, nulls) = match column {
            Column::Numbers(numbers, nulls) | Column::Lists(_, numbers, nulls) => (numbers, nulls),
            _ => return None,
        };
        if nulls.as_ref().is_some_and(|nulls| Run::rows(runs).any(|(row, _)| nulls.is_null(row))) {
            return None;
        }
        if let Column::Lists(offsets, ..) = column {
            let out = self.column_of(numbers, &numbers.shape)?;
            if memory == Memory::Copied {
                return self.copy_lists(offsets, numbers, runs);
            }
            let (memory, cell) = (out.add_view(numbers.view()), numbers.size);
            return match offsets {
                Offsets::Small(offsets) => place_lists(out, memory, runs, cell, |row| offsets[row].as_usize()),
                Offsets::Large(offsets) => place_lists(out, memory, runs, cell, |row| offsets[row].as_usize()),
            };
        }
        // A scalar is a row of a single cell.
        let (cells, inner) = numbers.shape.split_first().map_or((1, &[][..]), |(&cells, inner)| (cells, inner));
        let out = self.column_of(numbers, inner)?;
        let mut rows = Run::rows(runs);
        if memory == Memory::Viewed {
            let memory = out.add_view(numbers.view());
            return rows.try_for_each(|(row, to)| out.place(to, memory, row.checked_mul(numbers.size)?, cells));
        }
        rows.try_for_each(|(row, to)| {
            self.waiting.push((to, self.copied.len(), cells));
            self.copied.extend_from_slice(numbers.bytes(row, row + 1)?);
            Some(())
        })
    }

    /// Copies the cells of runs of lists.
    fn copy_lists(&mut self, offsets: &Offsets, numbers: &Numbers, runs: &[Run]) -> Option<()> {
        for run in runs {
            let (begin, end) = (offsets.range(run.from).0, offsets.range(run.from + run.len - 1).1);
            let copy = self.copied.len();
            self.copied.extend_from_slice(numbers.bytes(begin, end)?);
            for at in 0..run.len {
                let (from, to) = offsets.range(run.from + at);
                let start = copy + from.checked_sub(begin)?.checked_mul(numbers.size)?;
                self.waiting.push((run.to + at, start, to.checked_sub(from)?));
            }
        }
        Some(())
    }

    /// Returns the output column, or `None` if its type or inner shape differs.
    fn column_of(&mut self, numbers: &Numbers, inner: &[usize]) -> Option<&mut RaggedColumn> {
        let column = self.column.get_or_insert_with(|| RaggedColumn::new(numbers.dtype, inner, self.rows));
        (column.dtype() == numbers.dtype && column.inner() == inner).then_some(column)
    }

    fn finish(self) -> Option<RaggedColumn> {
        let mut column = self.column?;
        if !self.waiting.is_empty() {
            let memory = column.add_memory(Buffer::from_vec(self.copied));
            self.waiting.into_iter().try_for_each(|(row, start, cells)| column.place(row, memory, start, cells))?;
        }
        Some(column)
    }
}

fn place_lists(
    out: &mut RaggedColumn,
    memory: usize,
    runs: &[Run],
    cell: usize,
    offset: impl Fn(usize) -> usize,
) -> Option<()> {
    for (row, to) in Run::rows(runs) {
        let (begin, end) = (offset(row), offset(row + 1));
        out.place(to, memory, begin.checked_mul(cell)?, end.checked_sub(begin)?)?;
    }
    Some(())
}

/// Builds the rows of these columns after all were placed.
pub(super) fn finish(rows: usize, columns: Vec<RaggedMut>) -> Option<Ragged> {
    columns.into_iter().try_fold(Ragged::new(rows), |ragged, column| ragged.with_column(column.finish()?).ok())
}
