//! Consecutive elements of a kind, stored as rows. Their common structure is written once, and elements are constructed when
//! they are requested.
//!
//! For small elements, table words and the construction of each [`Element`] on a single thread cost as much as copying the
//! bytes. A run of rows has a single record: its structure, the dimensions of each array, the number of rows, and
//! their offset. A row is the concatenation of its arrays. Arrays of more than 8 bytes start at multiples of 64, and all
//! rows have the same length, the stride.

use std::sync::Arc;

use super::element::write_shape;
use super::input::In;
use super::output::{Out, Place, Stop};
use super::structure::{Kind, Tag, write_structure};
use super::{ALIGN, INLINE, ROWS};
use crate::element::Rows;
use crate::element::{Array, Buffer, DType, Element, Name, Owner, Value};
use crate::error::Result;

/// Conversion between items of a type and rows.
pub(crate) struct AsRows<T> {
    /// Returns the element that an item holds, if any.
    pub(crate) element: fn(&T) -> Option<&Element>,
    /// Converts rows of elements to rows of items.
    pub(crate) items: fn(ElementRows) -> Rows<T>,
}

clone_as!(<T> AsRows<T>, |self| *self);

impl<T> Copy for AsRows<T> {}

/// The layout that the rows of a run share.
pub(super) struct Layout {
    columns: Vec<Column>,
    stride: usize,
}

/// An array that every row contains.
struct Column {
    name: Name,
    dtype: DType,
    shape: Box<[usize]>,
    /// Offset in the row.
    start: usize,
}

impl Column {
    #[inline]
    fn is(&self, name: &str, value: &Value) -> bool {
        let Value::Array(array) = value else { return false };
        self.dtype == array.dtype() && *self.shape == *array.shape() && self.name == name
    }
}

impl Layout {
    /// Returns the layout of elements like `element`, or `None` if a value is not an array.
    pub(super) fn of(element: &Element) -> Option<Self> {
        let arrays: Option<Vec<_>> = element
            .iter()
            .map(|(name, value)| if let Value::Array(array) = value { Some((name, array)) } else { None })
            .collect();
        let arrays = arrays?;
        let (starts, stride) = places(arrays.iter().map(|(_, array)| array.bytes().len()))?;
        let column = |((name, array), start): ((&str, &Array), usize)| Column {
            name: Name::new(name),
            dtype: array.dtype(),
            shape: array.shape().into(),
            start,
        };
        Some(Self { columns: arrays.into_iter().zip(starts).map(column).collect(), stride })
    }

    /// Writes the record of a run and its first row. Returns the place of the number of rows.
    pub(super) fn begin(&self, out: &mut Out<'_>, kind: u32, element: &Element) -> Result<Place, Stop> {
        out.word(u64::from(ROWS) | u64::from(kind) << 32)?;
        write_structure(out, element.iter().map(|(name, value)| (name, Tag::of(value))))?;
        self.columns.iter().try_for_each(|column| write_shape(out, &column.shape))?;
        let count = out.place(1)?;
        let begins = out.place(0)?;
        let start = out.reserve(ALIGN, self.stride)?;
        out.replace(begins, start as u64);
        self.put(out, start, element);
        Ok(count)
    }

    #[inline]
    fn put(&self, out: &mut Out<'_>, start: usize, element: &Element) {
        for (column, (_, value)) in self.columns.iter().zip(element.iter()) {
            if let Value::Array(array) = value {
                out.put(start + column.start, array.bytes());
            }
        }
    }
}

/// Returns the offsets of arrays of these lengths in a row, and the stride. Returns `None` if the length overflows or is 0.
fn places(lens: impl Iterator<Item = usize>) -> Option<(Vec<usize>, usize)> {
    let (mut end, mut align, mut starts) = (0usize, size_of::<u64>(), Vec::new());
    for len in lens {
        let each = if len > INLINE { ALIGN } else { size_of::<u64>() };
        align = align.max(each);
        let start = end.checked_next_multiple_of(each)?;
        // A value takes a full word or more, so that reading time is proportional to the bytes.
        end = start.checked_add(len.max(size_of::<u64>()))?;
        starts.push(start);
    }
    let stride = end.checked_next_multiple_of(align)?;
    (stride > 0).then_some((starts, stride))
}

/// A run that the next element may join.
pub(super) struct Run {
    kind: u32,
    layout: Layout,
    count: Place,
    pub(super) rows: u64,
}

impl Run {
    /// Returns a run whose first row [`Layout::begin`] has written.
    pub(super) fn new(kind: u32, layout: Layout, count: Place) -> Self {
        Self { kind, layout, count, rows: 1 }
    }

    /// Returns true if `element` has the layout of the run.
    #[inline]
    pub(super) fn takes(&self, kind: u32, element: &Element) -> bool {
        let columns = &self.layout.columns;
        self.kind == kind
            && columns.len() == element.len()
            && columns.iter().zip(element.iter()).all(|(column, (name, value))| column.is(name, value))
    }

    /// Appends a row that the run [takes](Self::takes). There must be no other output since the last row.
    #[inline]
    pub(super) fn push(&mut self, out: &mut Out<'_>, element: &Element) -> Result<(), Stop> {
        let start = out.reserve(1, self.layout.stride)?;
        self.layout.put(out, start, element);
        self.rows += 1;
        out.replace(self.count, self.rows);
        Ok(())
    }

    /// Returns the bytes of an extent that fits this row alone.
    #[cold]
    pub(super) fn need(&self, element: &Element) -> usize {
        let mut out = Out::measure();
        if self.layout.begin(&mut out, self.kind, element).is_ok() { out.used() } else { usize::MAX }
    }
}

/// A run that is read row by row.
pub(crate) struct ElementRows {
    owner: Arc<dyn Owner>,
    fields: Vec<Field>,
    /// Offset of the next row.
    at: usize,
    stride: usize,
    left: usize,
}

/// A field of every row.
struct Field {
    name: Name,
    /// The array of the first row. Other rows differ only in their bytes.
    first: Array,
    start: usize,
}

impl ElementRows {
    /// Reads a run. Its first word is already consumed.
    pub(super) fn read(from: &mut In<'_>) -> Result<Self> {
        let fields = from.structure()?;
        let mut shapes = Vec::with_capacity(fields.len());
        for (name, kind) in &*fields {
            shapes.push((name.clone(), read_shape(from, kind)?));
        }
        let lens: Option<Vec<usize>> = shapes.iter().map(|(_, (dtype, shape))| bytes_of(*dtype, shape)).collect();
        let placed = lens.and_then(|lens| Some((places(lens.iter().copied())?, lens)));
        let Some(((starts, stride), lens)) = placed else {
            return Err(from.damaged("rows have no size".into()));
        };
        let left = from.length()?;
        let at = from.rows(left, stride)?;
        let mut rows = Self { owner: from.owner.clone(), fields: Vec::with_capacity(lens.len()), at, stride, left };
        for (((name, (dtype, shape)), start), len) in shapes.into_iter().zip(starts).zip(lens) {
            let first = Array::new(dtype, &shape, rows.buffer(start, len))?;
            rows.fields.push(Field { name, first, start });
        }
        Ok(rows)
    }

    /// Returns `len` bytes at offset `start` of the next row.
    #[inline(always)]
    fn buffer(&self, start: usize, len: usize) -> Buffer {
        let at = self.at + start;
        if len > INLINE {
            return Buffer::part_of(&self.owner, at, len);
        }
        let word = self.owner.bytes().get(at..).and_then(<[u8]>::first_chunk);
        Buffer::from_word(word.map_or(0, |word| u64::from_le_bytes(*word)), len)
    }
}

fn read_shape(from: &mut In<'_>, kind: &Kind) -> Result<(DType, Vec<usize>)> {
    let Kind::Array { dtype, rank } = *kind else {
        return Err(from.damaged("a value of rows is no array".into()));
    };
    from.claim(rank)?;
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        shape.push(from.length()?);
    }
    Ok((dtype, shape))
}

fn bytes_of(dtype: DType, shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(dtype.size(), |n, &dim| n.checked_mul(dim))
}

impl Iterator for ElementRows {
    type Item = Element;

    #[inline]
    fn next(&mut self) -> Option<Element> {
        self.left = self.left.checked_sub(1)?;
        let mut values = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let data = self.buffer(field.start, field.first.buffer().len());
            values.push((field.name.clone(), Value::Array(field.first.with_data(data))));
        }
        self.at += self.stride;
        Some(Element::from_unique(values))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for ElementRows {}
