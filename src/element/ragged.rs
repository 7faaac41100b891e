//! Columns of rows with different lengths.

use std::ops::Range;

use super::{Array, Buffer, DType, Element, Name, Value};
use crate::cx::ElementId;
use crate::error::{Error, Result};

/// Rows of several columns of sequences, stored as lengths and locations without an element per row.
///
/// Plans read the [lengths](RaggedColumn::lens) only. The [cells](RaggedColumn::cells) are read when a sequence is
/// written to its final position.
///
/// ```
/// use gristmill::element::{Buffer, DType, Ragged, RaggedColumn};
/// let mut tokens = RaggedColumn::new(DType::I32, &[], 2);
/// let memory = tokens.add_memory(Buffer::from_vec(vec![1i32, 2, 3]));
/// tokens.place(0, memory, 0, 1).unwrap();
/// tokens.place(1, memory, 4, 2).unwrap();
/// let rows = Ragged::new(2).with_column(tokens)?;
/// assert_eq!(rows.columns()[0].lens().collect::<Vec<_>>(), [1, 2]);
/// assert_eq!(rows.columns()[0].cells(1), [2, 0, 0, 0, 3, 0, 0, 0]);
/// # Ok::<(), gristmill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ragged {
    rows: usize,
    columns: Vec<RaggedColumn>,
    ids: Option<RowIds>,
}

/// The elements of rows that have lengths and no cells.
#[derive(Clone, Debug)]
pub(crate) struct RowIds {
    /// The element of each row.
    pub(crate) elements: Vec<ElementId>,
    /// The number of indices up to and including each row. Indices that yield nothing count with the next row.
    pub(crate) ends: Vec<u32>,
}

/// A column of [`Ragged`] rows: a sequence of cells in each row. All cells have equal dtype and shape.
#[derive(Clone, Debug)]
pub struct RaggedColumn {
    dtype: DType,
    inner: Vec<usize>,
    /// Size of a cell in bytes.
    cell: usize,
    memory: Vec<Buffer>,
    /// Whether `memory` exists only for these rows, at least in part.
    is_owned: bool,
    places: Vec<Place>,
}

/// The location of a row's cells.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    memory: u32,
    cells: u32,
    /// Offset of the first byte.
    start: usize,
}

impl Ragged {
    /// Makes `rows` rows without columns.
    pub fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new(), ids: None }
    }

    /// Sets the elements of the rows; ignored if their number differs from the number of rows.
    pub(crate) fn with_ids(mut self, ids: RowIds) -> Self {
        self.ids = Some(ids).filter(|ids| [ids.elements.len(), ids.ends.len()] == [self.rows; 2]);
        self
    }

    /// Returns the elements of the rows; `None` if the rows have cells.
    #[inline]
    pub(crate) fn ids(&self) -> Option<&RowIds> {
        self.ids.as_ref()
    }

    /// Adds a column.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the column has a different number of rows.
    pub fn with_column(mut self, column: RaggedColumn) -> Result<Self> {
        if column.places.len() != self.rows {
            return Err(Error::data(format!("a column has {} rows, expected {}", column.places.len(), self.rows)));
        }
        self.columns.push(column);
        Ok(self)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the columns, in the order of insertion.
    pub fn columns(&self) -> &[RaggedColumn] {
        &self.columns
    }

    /// Returns the payload bytes of all rows.
    pub fn nbytes(&self) -> usize {
        self.columns.iter().map(|column| column.lens().sum::<usize>() * column.cell).sum()
    }

    /// Returns true if all cells are in memory that a source holds anyway, such as a mapped file.
    pub(crate) fn is_view(&self) -> bool {
        self.ids.is_none() && self.columns.iter().all(|column| !column.is_owned)
    }

    /// Reads the cells of `rows`, so that they are in the cache before they are copied.
    ///
    /// The processor overlaps these reads, because none of them depends on another. Copies of scattered rows would each
    /// wait for main memory. If `scattered` is true, rows directly after the previous row are not read: the processor
    /// reads ahead of their copies.
    pub(crate) fn touch(&self, rows: Range<usize>, scattered: bool) {
        for column in &self.columns {
            rows.clone().filter(|&row| !(scattered && column.follows(row))).for_each(|row| touch(column.cells(row)));
        }
    }

    /// Returns row `row` as an element; `names` are the names of the columns.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the row does not exist.
    pub fn row(&self, names: &[Name], row: usize) -> Result<Element> {
        let field = |(name, column): (&Name, &RaggedColumn)| Ok((name.clone(), Value::Array(column.array(row)?)));
        Ok(Element::from_unique(names.iter().zip(&self.columns).map(field).collect::<Result<_>>()?))
    }
}

impl RaggedColumn {
    /// Makes `rows` empty rows, whose cells have dtype `dtype` and shape `inner`.
    pub fn new(dtype: DType, inner: &[usize], rows: usize) -> Self {
        let cell = inner.iter().fold(dtype.size(), |size, &n| size.saturating_mul(n));
        let places = vec![Place::default(); rows];
        Self { dtype, inner: inner.to_vec(), cell, memory: Vec::new(), is_owned: false, places }
    }

    /// Adds memory for rows and returns its number.
    pub fn add_memory(&mut self, memory: Buffer) -> usize {
        self.is_owned = true;
        self.add_view(memory)
    }

    /// Adds memory that the source holds anyway, such as a mapped file, and returns its number.
    pub(crate) fn add_view(&mut self, memory: Buffer) -> usize {
        self.memory.push(memory);
        self.memory.len() - 1
    }

    /// Sets the location of a row: `cells` cells from byte `start` of `memory` on. `None` if they are out of bounds.
    #[inline]
    pub fn place(&mut self, row: usize, memory: usize, start: usize, cells: usize) -> Option<()> {
        let end = start.checked_add(cells.checked_mul(self.cell)?)?;
        (end <= self.memory.get(memory)?.len()).then_some(())?;
        let place = Place { memory: u32::try_from(memory).ok()?, cells: u32::try_from(cells).ok()?, start };
        *self.places.get_mut(row)? = place;
        Some(())
    }

    /// Returns the dtype of the cells.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape of a cell; empty for numbers.
    pub fn inner(&self) -> &[usize] {
        &self.inner
    }

    /// Iterates over the number of cells of each row.
    pub fn lens(&self) -> impl ExactSizeIterator<Item = usize> {
        self.places.iter().map(|place| place.cells as usize)
    }

    /// Returns the number of cells of a row, which must exist.
    #[inline]
    pub(crate) fn len_of(&self, row: usize) -> usize {
        self.places[row].cells as usize
    }

    /// Returns the bytes of the cells of a row.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[inline]
    pub fn cells(&self, row: usize) -> &[u8] {
        let Place { memory, cells, start } = self.places[row];
        // Empty rows may have no memory.
        let bytes = self.memory.get(memory as usize).map_or(&[][..], Buffer::as_bytes);
        &bytes[start..start + cells as usize * self.cell]
    }

    /// Returns true if a row lies directly after the previous row.
    #[inline]
    fn follows(&self, row: usize) -> bool {
        let Some(before) = row.checked_sub(1).map(|before| self.places[before]) else { return false };
        let place = self.places[row];
        (before.memory, before.start + before.cells as usize * self.cell) == (place.memory, place.start)
    }

    fn array(&self, row: usize) -> Result<Array> {
        let place =
            self.places.get(row).ok_or_else(|| Error::data(format!("no row {row} of {}", self.places.len())))?;
        let (start, len) = (place.start, place.cells as usize * self.cell);
        let bytes = match self.memory.get(place.memory as usize) {
            Some(memory) => memory.slice(start..start + len),
            None => Some(Buffer::EMPTY),
        };
        let shape: Vec<usize> = std::iter::once(place.cells as usize).chain(self.inner.iter().copied()).collect();
        Array::new(self.dtype, &shape, bytes.ok_or_else(|| Error::data(format!("row {row} lies nowhere")))?)
    }
}

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Reads a byte of each line of the cache.
#[inline]
fn touch(bytes: &[u8]) {
    let lines = bytes.iter().step_by(LINE).fold(0, |sum: u8, byte| sum ^ byte);
    std::hint::black_box(lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_where_they_were_placed() {
        let mut column = RaggedColumn::new(DType::U16, &[2], 3);
        let first = column.add_memory(Buffer::from_vec(vec![1u16, 2, 3, 4]));
        let second = column.add_memory(Buffer::from_vec(vec![5u16, 6]));
        column.place(2, first, 4, 1).unwrap();
        column.place(0, second, 0, 1).unwrap();
        assert!(column.place(1, first, 4, 2).is_none(), "behind the end");
        assert!(column.place(1, 2, 0, 0).is_none() && column.place(3, first, 0, 1).is_none());
        assert!(column.place(1, first, usize::MAX, 1).is_none() && column.place(1, first, 0, usize::MAX).is_none());
        let rows = Ragged::new(3).with_column(column).unwrap();
        let column = &rows.columns()[0];
        assert_eq!(column.lens().collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!([column.cells(0), column.cells(1), column.cells(2)], [&[5u8, 0, 6, 0][..], &[], &[3, 0, 4, 0]]);
        assert_eq!(rows.nbytes(), 8);
        let names = [Name::new("x")];
        let row = rows.row(&names, 2).unwrap();
        assert_eq!(
            (row.array("x").unwrap().shape(), row.array("x").unwrap().bytes()),
            (&[1, 2][..], &[3, 0, 4, 0][..])
        );
        assert_eq!(rows.row(&names, 1).unwrap().array("x").unwrap().shape(), [0, 2]);
        assert!(rows.row(&names, 3).is_err());
        assert!(rows.with_column(RaggedColumn::new(DType::U8, &[], 2)).is_err());
        let empty = Ragged::new(2).with_column(RaggedColumn::new(DType::U8, &[], 2)).unwrap();
        assert!(empty.columns()[0].cells(1).is_empty());
    }
}
