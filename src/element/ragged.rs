//! Rows of different lengths, as columns.

use super::{Array, Buffer, DType, Element, Name, Value};
use crate::error::{Error, Result};

/// Rows of several columns of sequences, without an element for each: how long every sequence is, and where its cells lie.
///
/// A plan is made from the [lengths](RaggedColumn::lens) alone; the [cells](RaggedColumn::cells) are looked at when a sequence is
/// written to its place.
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
    stands_for: Option<StandsFor>,
}

/// Which element a row stands for where rows are planned: its index, and where that comes from.
pub(crate) type Tag = [u64; 2];

/// The elements that rows stand for, of which nothing was evaluated.
#[derive(Clone, Debug)]
pub(crate) struct StandsFor {
    /// Of each row, which it is.
    pub(crate) tags: Vec<Tag>,
    /// Of each row, the indices up to it: those that yield nothing are passed with the next row.
    pub(crate) ends: Vec<u32>,
}

/// A column of [`Ragged`] rows: a sequence of cells in each row, all cells of one dtype and shape.
#[derive(Clone, Debug)]
pub struct RaggedColumn {
    dtype: DType,
    inner: Vec<usize>,
    /// Bytes of a cell.
    cell: usize,
    memory: Vec<Buffer>,
    places: Vec<Place>,
}

/// The place of a row's cells.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    memory: u32,
    cells: u32,
    /// The first byte.
    start: usize,
}

impl Ragged {
    /// Makes so many rows without columns.
    pub fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new(), stands_for: None }
    }

    /// Says which elements rows stand for, of which there are as many.
    pub(crate) fn standing_for(mut self, elements: StandsFor) -> Self {
        self.stands_for =
            Some(elements).filter(|elements| [elements.tags.len(), elements.ends.len()] == [self.rows; 2]);
        self
    }

    /// The elements that rows stand for where they are planned; `None` where they have cells.
    #[inline]
    pub(crate) fn stands_for(&self) -> Option<&StandsFor> {
        self.stands_for.as_ref()
    }

    /// Adds a column.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if it has another number of rows.
    pub fn with_column(mut self, column: RaggedColumn) -> Result<Self> {
        if column.places.len() != self.rows {
            return Err(Error::data(format!("a column of {} rows, and there are {}", column.places.len(), self.rows)));
        }
        self.columns.push(column);
        Ok(self)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The columns, in the order in which they were asked for.
    pub fn columns(&self) -> &[RaggedColumn] {
        &self.columns
    }

    /// The payload bytes of all rows.
    pub fn nbytes(&self) -> usize {
        self.columns.iter().map(|column| column.lens().sum::<usize>() * column.cell).sum()
    }

    /// Row `row` as the element that it stands for; `names` are those of the columns.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if there is no such row.
    pub fn row(&self, names: &[Name], row: usize) -> Result<Element> {
        let field = |(name, column): (&Name, &RaggedColumn)| Ok((name.clone(), Value::Array(column.array(row)?)));
        Ok(Element::from_unique(names.iter().zip(&self.columns).map(field).collect::<Result<_>>()?))
    }
}

impl RaggedColumn {
    /// Makes so many empty rows of cells of this dtype and shape.
    pub fn new(dtype: DType, inner: &[usize], rows: usize) -> Self {
        let cell = inner.iter().fold(dtype.size(), |size, &n| size.saturating_mul(n));
        Self { dtype, inner: inner.to_vec(), cell, memory: Vec::new(), places: vec![Place::default(); rows] }
    }

    /// Adds memory that rows lie in, and gives its number.
    pub fn add_memory(&mut self, memory: Buffer) -> usize {
        self.memory.push(memory);
        self.memory.len() - 1
    }

    /// Says where a row lies: so many cells from byte `start` of a memory on. `None` if they are not there.
    #[inline]
    pub fn place(&mut self, row: usize, memory: usize, start: usize, cells: usize) -> Option<()> {
        let end = start.checked_add(cells.checked_mul(self.cell)?)?;
        (end <= self.memory.get(memory)?.len()).then_some(())?;
        let place = Place { memory: u32::try_from(memory).ok()?, cells: u32::try_from(cells).ok()?, start };
        *self.places.get_mut(row)? = place;
        Some(())
    }

    /// The dtype of the cells.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape of a cell: empty for numbers.
    pub fn inner(&self) -> &[usize] {
        &self.inner
    }

    /// The number of cells of each row.
    pub fn lens(&self) -> impl ExactSizeIterator<Item = usize> {
        self.places.iter().map(|place| place.cells as usize)
    }

    /// The number of cells of a row, which there is.
    #[inline]
    pub(crate) fn len_of(&self, row: usize) -> usize {
        self.places[row].cells as usize
    }

    /// The bytes of the cells of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn cells(&self, row: usize) -> &[u8] {
        let Place { memory, cells, start } = self.places[row];
        // Empty rows may lie nowhere.
        let bytes = self.memory.get(memory as usize).map_or(&[][..], Buffer::as_bytes);
        &bytes[start..start + cells as usize * self.cell]
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
