//! Columns prepared for reading: properties that hold for all rows are computed once.

use arrow_array::cast::AsArray;
use arrow_array::{Array as _, ArrayRef, LargeStringArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer as ArrowBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::tensors;
use super::value::{Memory, may_fail, plain, text, value};
use crate::element::{Array, Buffer, ColumnMut, DType, Element, Name, Run, Value};
use crate::error::Result;

/// Values of a column in some rows.
pub(crate) enum Column {
    /// Numbers of equal shape in each row.
    Numbers(Numbers, Option<NullBuffer>),
    /// Lists of numbers, whose length differs from row to row.
    Lists(Offsets, Numbers, Option<NullBuffer>),
    Text(StringArray),
    LargeText(LargeStringArray),
    Tree(Vec<(Name, Column)>, Option<NullBuffer>),
    /// Any other type, converted value by value.
    Other(FieldRef, ArrayRef),
}

/// Non-null numbers of equal shape in each row.
pub(crate) struct Numbers {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    /// Bytes per row.
    pub(super) size: usize,
    data: ArrowBuffer,
}

/// Offset of the first item of each row.
pub(crate) enum Offsets {
    Small(OffsetBuffer<i32>),
    Large(OffsetBuffer<i64>),
}

impl Column {
    /// Prepares the column of this field.
    pub(crate) fn of(field: &FieldRef, array: &ArrayRef) -> Self {
        Self::ready(field, array).unwrap_or_else(|| Self::Other(field.clone(), array.clone()))
    }

    fn ready(field: &FieldRef, array: &ArrayRef) -> Option<Self> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        Some(match array.data_type() {
            DataType::Utf8 => Self::Text(array.as_string().clone()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string().clone()),
            DataType::List(item) if tensors::shape(field).is_none() => {
                let lists = array.as_list::<i32>();
                Self::Lists(
                    Offsets::Small(lists.offsets().clone()),
                    Numbers::without_nulls(item, lists.values())?,
                    nulls,
                )
            }
            DataType::LargeList(item) if tensors::shape(field).is_none() => {
                let lists = array.as_list::<i64>();
                Self::Lists(
                    Offsets::Large(lists.offsets().clone()),
                    Numbers::without_nulls(item, lists.values())?,
                    nulls,
                )
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let named =
                    |(field, column): (&FieldRef, &ArrayRef)| (Name::new(field.name()), Self::of(field, column));
                let twice =
                    |(at, field): (usize, &FieldRef)| fields[..at].iter().any(|other| other.name() == field.name());
                if fields.iter().enumerate().any(twice) {
                    return None;
                }
                Self::Tree(columns.map(named).collect(), nulls)
            }
            _ => Self::Numbers(Numbers::of(field, array)?.told(field)?, nulls),
        })
    }

    /// Returns the value of a row.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the array contradicts its type.
    pub(crate) fn value(&self, row: usize, memory: Memory) -> Result<Value> {
        if self.is_null(row) {
            return Ok(Value::Null);
        }
        Ok(match self {
            Self::Numbers(numbers, _) => numbers.row(row, memory)?.into(),
            Self::Lists(offsets, numbers, _) => {
                let (begin, end) = offsets.range(row);
                numbers.rows(begin, end, memory)?.into()
            }
            Self::Text(texts) => text(texts.value(row)),
            Self::LargeText(texts) => text(texts.value(row)),
            Self::Tree(fields, _) => {
                let field = |(name, column): &(Name, Self)| Ok((name.clone(), column.value(row, memory)?));
                Element::from_unique(fields.iter().map(field).collect::<Result<_>>()?).into()
            }
            Self::Other(field, array) => value(field, array, row, memory)?,
        })
    }

    /// Writes the values of rows to field `at` of elements. `rows` holds pairs of a row and the index of its element.
    ///
    /// # Errors
    /// As for [`value`](Self::value).
    pub(crate) fn put_each(
        &self,
        at: usize,
        rows: &[(usize, usize)],
        memory: Memory,
        elements: &mut [Element],
    ) -> Result<()> {
        match self {
            Self::Numbers(numbers, None) if numbers.shape.is_empty() => numbers.put_each(at, rows, elements),
            Self::Text(texts) if texts.null_count() == 0 => {
                for &(row, to) in rows {
                    *elements[to].place_mut(at) = text(texts.value(row));
                }
            }
            _ => {
                for &(row, to) in rows {
                    *elements[to].place_mut(at) = self.value(row, memory)?;
                }
            }
        }
        Ok(())
    }

    /// Returns true if the conversion of a value may fail.
    pub(super) fn may_fail(&self) -> bool {
        match self {
            Self::Numbers(..) | Self::Lists(..) | Self::Text(_) | Self::LargeText(_) => false,
            Self::Tree(fields, _) => fields.iter().any(|(_, column)| column.may_fail()),
            Self::Other(field, _) => may_fail(field.data_type()),
        }
    }

    /// Returns true if a row is null. [`Self::Other`] checks for null during the conversion and returns false here.
    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Numbers(_, nulls) | Self::Lists(_, _, nulls) | Self::Tree(_, nulls) => {
                nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
            }
            Self::Text(texts) => texts.is_null(row),
            Self::LargeText(texts) => texts.is_null(row),
            Self::Other(..) => false,
        }
    }

    /// Copies `runs` of rows into a column of a batch; returns `None` if a row does not match the batch's first row.
    ///
    /// # Errors
    /// As for [`value`](Self::value).
    pub(crate) fn copy_runs(&self, runs: &[Run], memory: Memory, out: &mut ColumnMut) -> Result<Option<()>> {
        match (self, out) {
            (Self::Numbers(numbers, nulls), ColumnMut::Array(rows)) => {
                let alike = !any_null(nulls.as_ref(), runs) && rows.holds(numbers.dtype, &numbers.shape);
                Ok(alike.then(|| rows.copy_runs(runs, &numbers.data)).flatten())
            }
            (Self::Lists(offsets, numbers, nulls), ColumnMut::Array(rows)) => {
                if any_null(nulls.as_ref(), runs) {
                    return Ok(None);
                }
                let copied = runs.iter().try_for_each(|run| {
                    let (begin, end) = offsets.even(run.from, run.len)?;
                    let shape = numbers.list_shape((end - begin) / run.len);
                    rows.holds(numbers.dtype, &shape).then(|| rows.copy(run.to, numbers.bytes(begin, end)?)).flatten()
                });
                Ok(copied)
            }
            (Self::Text(texts), ColumnMut::List(list)) => {
                let value = |row| if texts.is_null(row) { Value::Null } else { text(texts.value(row)) };
                Ok(Run::rows(runs).try_for_each(|(row, to)| list.put(to, value(row))))
            }
            (Self::Tree(fields, nulls), ColumnMut::Tree(tree)) => {
                if any_null(nulls.as_ref(), runs) || tree.columns_mut().len() != fields.len() {
                    return Ok(None);
                }
                for ((name, column), (other, out)) in fields.iter().zip(tree.columns_mut()) {
                    if name != other || column.copy_runs(runs, memory, out)?.is_none() {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            }
            (_, out) => {
                for (row, to) in Run::rows(runs) {
                    if out.put(to, self.value(row, memory)?).is_none() {
                        return Ok(None);
                    }
                }
                Ok(Some(()))
            }
        }
    }
}

fn any_null(nulls: Option<&NullBuffer>, runs: &[Run]) -> bool {
    nulls.is_some_and(|nulls| Run::rows(runs).any(|(row, _)| nulls.is_null(row)))
}

impl Numbers {
    fn without_nulls(field: &Field, array: &ArrayRef) -> Option<Self> {
        if array.null_count() > 0 || *array.data_type() == DataType::Boolean { None } else { Self::of(field, array) }
    }

    /// Prepares numbers, or fixed-size lists of numbers. The rows themselves may be null.
    fn of(field: &Field, array: &ArrayRef) -> Option<Self> {
        let rows = array.len();
        let (mut shape, mut field, mut inner) = (Vec::new(), field, array);
        while let DataType::FixedSizeList(item, size) = inner.data_type() {
            let lists = inner.as_fixed_size_list();
            shape.push(usize::try_from(*size).ok()?);
            (field, inner) = (item, lists.values());
            // Unpacking booleans takes eight times the memory, so lists of booleans are unpacked row by row.
            if inner.null_count() > 0 || *inner.data_type() == DataType::Boolean {
                return None;
            }
        }
        let (dtype, data) = plain(field, inner)?;
        let size = shape.iter().try_fold(dtype.size(), |size, &n| size.checked_mul(n))?;
        (data.len() == size.checked_mul(rows)?).then_some(Self { dtype, shape, size, data })
    }

    /// Applies the shape in the field's metadata, if present; returns `None` if the rows do not have that shape.
    fn told(self, field: &Field) -> Option<Self> {
        let Some(told) = tensors::shape(field).filter(|_| !self.shape.is_empty()) else { return Some(self) };
        let shape: Vec<usize> = told.into_iter().collect::<Option<_>>()?;
        let size = shape.iter().try_fold(self.dtype.size(), |size, &n| size.checked_mul(n))?;
        (self.shape.len() == 1 && size == self.size).then_some(Self { shape, ..self })
    }

    /// Returns a view of all rows.
    pub(super) fn view(&self) -> Buffer {
        Memory::Viewed.of(&self.data)
    }

    fn list_shape(&self, len: usize) -> Vec<usize> {
        let mut shape = Vec::with_capacity(1 + self.shape.len());
        shape.push(len);
        shape.extend_from_slice(&self.shape);
        shape
    }

    pub(super) fn bytes(&self, begin: usize, end: usize) -> Option<&[u8]> {
        self.data.get(begin.checked_mul(self.size)?..end.checked_mul(self.size)?)
    }

    fn row(&self, row: usize, memory: Memory) -> Result<Array> {
        // A scalar is stored in its handle.
        let memory = if self.shape.is_empty() { Memory::Copied } else { memory };
        Array::new(self.dtype, &self.shape, self.piece(row, row + 1, memory))
    }

    /// Writes scalars to field `at` of elements.
    fn put_each(&self, at: usize, rows: &[(usize, usize)], elements: &mut [Element]) {
        match self.size {
            1 => self.put_sized::<1>(at, rows, elements),
            2 => self.put_sized::<2>(at, rows, elements),
            4 => self.put_sized::<4>(at, rows, elements),
            _ => self.put_sized::<8>(at, rows, elements),
        }
    }

    fn put_sized<const SIZE: usize>(&self, at: usize, rows: &[(usize, usize)], elements: &mut [Element]) {
        let (numbers, _) = self.data.as_chunks::<SIZE>();
        for &(row, to) in rows {
            let mut bits = [0; 8];
            bits[..SIZE].copy_from_slice(&numbers[row]);
            *elements[to].place_mut(at) = Array::from_bits(self.dtype, u64::from_le_bytes(bits)).into();
        }
    }

    fn rows(&self, begin: usize, end: usize, memory: Memory) -> Result<Array> {
        Array::new(self.dtype, &self.list_shape(end - begin), self.piece(begin, end, memory))
    }

    fn piece(&self, begin: usize, end: usize, memory: Memory) -> Buffer {
        let (begin, bytes) = (begin * self.size, (end - begin) * self.size);
        match memory {
            Memory::Viewed => memory.of(&self.data.slice_with_length(begin, bytes)),
            Memory::Copied => Buffer::copy_from(&self.data[begin..][..bytes]),
        }
    }
}

impl Offsets {
    pub(super) fn range(&self, row: usize) -> (usize, usize) {
        (self.at(row), self.at(row + 1))
    }

    fn at(&self, row: usize) -> usize {
        match self {
            Self::Small(offsets) => offsets[row].as_usize(),
            Self::Large(offsets) => offsets[row].as_usize(),
        }
    }

    /// Returns the begin and end of the items of `rows` rows, if all of them have equally many items.
    fn even(&self, first: usize, rows: usize) -> Option<(usize, usize)> {
        let (begin, end) = (self.at(first), self.at(first + rows));
        let each = (end - begin) / rows;
        (0..=rows).all(|row| self.at(first + row) == begin + row * each).then_some((begin, end))
    }
}
