//! A dense array leaf.

use super::buffer::{Buffer, BufferMut};
use super::dtype::{DType, Scalar};
use crate::error::{Error, Result};

/// A dense row-major array: dtype, shape, bytes. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Array {
    dtype: DType,
    shape: Shape,
    data: Buffer,
}

/// The dimensions of an array: up to two are stored inline, more on the heap.
#[derive(Clone, PartialEq, Eq)]
enum Shape {
    Flat { rank: u8, dims: [usize; 2] },
    Heap(Box<[usize]>),
}

impl Shape {
    #[inline]
    fn new(shape: &[usize]) -> Self {
        match *shape {
            [] => Self::Flat { rank: 0, dims: [0, 0] },
            [a] => Self::Flat { rank: 1, dims: [a, 0] },
            [a, b] => Self::Flat { rank: 2, dims: [a, b] },
            _ => Self::Heap(shape.into()),
        }
    }

    fn dims(&self) -> &[usize] {
        match self {
            Self::Flat { rank, dims } => &dims[..usize::from(*rank)],
            Self::Heap(dims) => dims,
        }
    }
}

impl Array {
    /// Makes an array over `data`, whose length must match dtype and shape exactly.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the length does not match, or if the product overflows.
    pub fn new(dtype: DType, shape: &[usize], data: Buffer) -> Result<Self> {
        let need = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d));
        if need != Some(data.len()) {
            return Err(Error::data(format!("an array {dtype}{shape:?} needs {need:?} bytes, got {}", data.len())));
        }
        Ok(Self { dtype, shape: Shape::new(shape), data })
    }

    /// Makes an array of shape `[]` from one number, stored inline.
    #[inline]
    pub fn scalar<T: Scalar>(value: T) -> Self {
        Self { dtype: T::DTYPE, shape: Shape::new(&[]), data: Buffer::copy_from(bytemuck::bytes_of(&value)) }
    }

    /// Makes an array of shape `[]` whose bytes are the lowest of `bits`, for a dtype known only at run time.
    #[inline]
    pub(crate) fn from_bits(dtype: DType, bits: u64) -> Self {
        Self { dtype, shape: Shape::Flat { rank: 0, dims: [0, 0] }, data: Buffer::from_word(bits, dtype.size()) }
    }

    /// Makes a boolean array of shape `[]`.
    pub fn bool(value: bool) -> Self {
        Self { dtype: DType::Bool, shape: Shape::new(&[]), data: Buffer::copy_from(&[u8::from(value)]) }
    }

    /// Makes a one-dimensional array that takes over `values` without a copy.
    pub fn from_vec<T: Scalar + Send + Sync>(values: Vec<T>) -> Self {
        Self { dtype: T::DTYPE, shape: Shape::new(&[values.len()]), data: Buffer::from_vec(values) }
    }

    /// Allocates a zeroed array to be filled in place.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the array does not fit in memory.
    pub fn builder(dtype: DType, shape: &[usize]) -> Result<ArrayMut> {
        let bytes = bytes_for(dtype, shape)?;
        Ok(ArrayMut { dtype, shape: Shape::new(shape), data: BufferMut::try_zeroed(bytes)? })
    }

    /// Allocates an array whose rows are written in order, possibly in memory recycled from an earlier array.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if the array does not fit in memory.
    pub(crate) fn of_rows(dtype: DType, shape: &[usize]) -> Result<ArrayRows> {
        let bytes = bytes_for(dtype, shape)?;
        let array = ArrayMut { dtype, shape: Shape::new(shape), data: BufferMut::try_used(bytes)? };
        let row = bytes.checked_div(shape.first().copied().unwrap_or(1)).unwrap_or(0);
        Ok(ArrayRows { array, row, written: 0 })
    }

    /// Returns the number type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dimensions, outermost first; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Returns the count of numbers over all dimensions.
    pub fn size(&self) -> usize {
        self.data.len() / self.dtype.size()
    }

    /// Returns the bytes, row-major and little-endian.
    pub fn bytes(&self) -> &[u8] {
        self.data.as_bytes()
    }

    /// Returns the underlying shared memory.
    pub fn buffer(&self) -> &Buffer {
        &self.data
    }

    /// Returns the array in writable memory without other views. Copies if the memory is shared, inline or not on the heap.
    pub fn into_exclusive(self) -> Self {
        Self { data: self.data.into_exclusive(), ..self }
    }

    /// Consumes the array and returns the underlying shared memory.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.data
    }

    /// Returns the numbers without a copy.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the dtype is not `T`, or if the bytes are a misaligned view of a file.
    pub fn as_slice<T: Scalar>(&self) -> Result<&[T]> {
        if self.dtype != T::DTYPE {
            return Err(Error::data(format!("expected an array of {}, got {self:?}", T::DTYPE)));
        }
        self.data
            .as_slice()
            .ok_or_else(|| Error::data(format!("{self:?} is not aligned to {} bytes", self.dtype.size())))
    }

    /// Returns the only number of an array of size 1, widened from any integer type or bool; `None` for floats.
    pub fn as_i64(&self) -> Option<i64> {
        let b = self.bytes();
        Some(match self.dtype {
            _ if self.size() != 1 => return None,
            DType::Bool | DType::U8 => b[0].into(),
            DType::I8 => (b[0] as i8).into(),
            DType::U16 => u16::from_le_bytes(b.try_into().ok()?).into(),
            DType::I16 => i16::from_le_bytes(b.try_into().ok()?).into(),
            DType::U32 => u32::from_le_bytes(b.try_into().ok()?).into(),
            DType::I32 => i32::from_le_bytes(b.try_into().ok()?).into(),
            DType::U64 => u64::from_le_bytes(b.try_into().ok()?).try_into().ok()?,
            DType::I64 => i64::from_le_bytes(b.try_into().ok()?),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return None,
        })
    }

    /// Returns rows `range` of the outermost dimension, sharing the memory; `None` for a scalar or if a row is missing.
    pub fn rows(&self, range: std::ops::Range<usize>) -> Option<Self> {
        let (&rows, inner) = self.shape().split_first()?;
        if range.start > range.end || range.end > rows {
            return None;
        }
        let row: usize = inner.iter().product::<usize>() * self.dtype.size();
        let data = self.data.slice(range.start * row..range.end * row)?;
        let mut shape = self.shape().to_vec();
        shape[0] = range.len();
        Some(Self { dtype: self.dtype, shape: Shape::new(&shape), data })
    }

    /// Copies the rows with these indices of the outermost dimension, in this order; `None` for a scalar or if a row is
    /// missing.
    pub fn rows_at(&self, rows: &[usize]) -> Option<Self> {
        let (&len, inner) = self.shape().split_first()?;
        let row = inner.iter().product::<usize>() * self.dtype.size();
        if rows.iter().any(|&at| at >= len) {
            return None;
        }
        let mut shape = self.shape().to_vec();
        shape[0] = rows.len();
        let mut out = Self::builder(self.dtype, &shape).ok()?;
        if row > 0 {
            for (to, &at) in out.bytes_mut().chunks_exact_mut(row).zip(rows) {
                to.copy_from_slice(&self.bytes()[at * row..][..row]);
            }
        }
        Some(out.freeze())
    }

    /// Returns the bytes of row `row` of the outermost dimension, which must exist.
    pub(crate) fn row_bytes(&self, row: usize) -> &[u8] {
        let size = self.bytes().len() / self.shape()[0];
        &self.bytes()[row * size..][..size]
    }

    /// Returns row `row` of the outermost dimension, without that dimension, sharing the memory.
    pub fn row(&self, row: usize) -> Option<Self> {
        let rows = self.rows(row..row.checked_add(1)?)?;
        let shape = Shape::new(&self.shape()[1..]);
        Some(Self { shape, ..rows })
    }
}

impl Array {
    /// Makes an array of `rank` dimensions, at most 2, over `data`, whose length must match them.
    #[inline(always)]
    pub(crate) fn flat(dtype: DType, rank: u8, dims: [usize; 2], data: Buffer) -> Self {
        let array = Self { dtype, shape: Shape::Flat { rank, dims }, data };
        debug_assert_eq!(Some(array.data.len()), array.shape().iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d)));
        array
    }

    /// Returns an array of equal dtype and shape over `data`, whose length must equal the current length.
    #[inline(always)]
    pub(crate) fn with_data(&self, data: Buffer) -> Self {
        debug_assert_eq!(self.data.len(), data.len());
        Self { dtype: self.dtype, shape: self.shape.clone(), data }
    }
}

/// Returns the bytes of an array, or an error if they exceed `isize::MAX`.
fn bytes_for(dtype: DType, shape: &[usize]) -> Result<usize> {
    let bytes = shape.iter().try_fold(dtype.size(), |n, &d| n.checked_mul(d)).filter(|&n| n <= isize::MAX as usize);
    bytes.ok_or_else(|| Error::config(format!("an array {dtype}{shape:?} does not fit in memory")))
}

debug_as!(Array, |self, f| write!(f, "{}{:?}", self.dtype, self.shape()));

/// A writable array, not yet shared.
pub struct ArrayMut {
    dtype: DType,
    shape: Shape,
    data: BufferMut,
}

impl ArrayMut {
    /// Returns the bytes to fill, row-major; initially 0.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.data.as_mut_bytes()
    }

    /// Returns the numbers to fill; initially 0.
    ///
    /// # Panics
    /// Panics if `T` is not the array's dtype. This is a bug in the caller, which chose both.
    pub fn as_mut_slice<T: Scalar>(&mut self) -> &mut [T] {
        assert_eq!(T::DTYPE, self.dtype, "an array is filled with its own dtype");
        self.data.as_mut_slice()
    }

    /// Finishes writing and returns the array.
    pub fn freeze(self) -> Array {
        Array { dtype: self.dtype, shape: self.shape, data: self.data.freeze() }
    }
}

debug_as!(ArrayMut, |self, f| write!(f, "ArrayMut({}{:?})", self.dtype, self.shape.dims()));

/// An array whose rows are written in order, every byte once. Its memory is not zeroed first.
pub(crate) struct ArrayRows {
    array: ArrayMut,
    /// Bytes of a row; `written` counts the bytes of all rows handed out.
    row: usize,
    written: usize,
}

impl ArrayRows {
    /// Returns the numbers of the next row, or `None` after the last. The initial values are arbitrary; write all of them.
    ///
    /// # Panics
    /// Panics if `T` is not the array's dtype. This is a bug in the caller, which chose both.
    pub(crate) fn next_row<T: Scalar>(&mut self) -> Option<&mut [T]> {
        assert_eq!(T::DTYPE, self.array.dtype, "an array is filled with its own dtype");
        self.next_bytes().map(bytemuck::cast_slice_mut)
    }

    /// Writes the next row; `None` if its length is wrong or all rows are written.
    pub(crate) fn push(&mut self, row: &[u8]) -> Option<()> {
        if row.len() != self.row {
            return None;
        }
        self.next_bytes()?.copy_from_slice(row);
        Some(())
    }

    fn next_bytes(&mut self) -> Option<&mut [u8]> {
        let start = self.written;
        let place = self.array.bytes_mut().get_mut(start..start.checked_add(self.row)?)?;
        self.written += place.len();
        Some(place)
    }

    /// Finishes writing and returns the array. Unwritten rows are 0.
    pub(crate) fn freeze(mut self) -> Array {
        let written = self.written;
        self.array.bytes_mut()[written..].fill(0);
        self.array.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks for more memory than there is, where an interpreter stops")]
    fn length_must_match_shape() {
        for shape in [&[1usize << 45][..], &[1 << 30, 1 << 30]] {
            let error = Array::builder(DType::U8, shape).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Config, "{error}");
        }
        let six = Buffer::from_vec(vec![0i32; 6]);
        assert!(Array::new(DType::I32, &[2, 3], six.clone()).is_ok());
        assert!(Array::new(DType::I32, &[2, 2], six.clone()).is_err());
        assert!(Array::new(DType::I32, &[usize::MAX, 3], six).is_err());
    }

    /// A batch reuses the memory of a dropped batch and exposes none of its contents.
    #[test]
    fn rows_are_written_to_memory_that_was_in_use_before() {
        // No other test has arrays of this size.
        let shape = [300, 1021];
        let batch = |rows: usize, id: i32| {
            let mut batch = Array::of_rows(DType::I32, &shape).unwrap();
            (0..rows).for_each(|_| batch.next_row::<i32>().unwrap().fill(id));
            batch.freeze()
        };
        let first = batch(300, 1);
        let place = first.bytes().as_ptr();
        assert!(place.align_offset(64) == 0 && first.as_slice::<i32>().unwrap().iter().all(|&id| id == 1));
        let view = first.rows(7..8).unwrap();
        drop(first);
        let second = batch(300, 2);
        assert_ne!(second.bytes().as_ptr(), place, "somebody has a view");
        assert!(view.as_slice::<i32>().unwrap().iter().all(|&id| id == 1));
        drop(view);
        let third = batch(200, 3);
        assert_eq!(third.bytes().as_ptr(), place);
        let (written, rest) = third.as_slice::<i32>().unwrap().split_at(200 * 1021);
        assert!(written.iter().all(|&id| id == 3) && rest.iter().all(|&id| id == 0));
        let mut third = third.into_exclusive();
        assert_eq!((third.bytes().as_ptr(), third.data.as_mut_bytes().is_some()), (place, true));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks for more memory than there is, where an interpreter stops")]
    fn rows_are_as_many_and_as_long_as_was_said() {
        let mut rows = Array::of_rows(DType::U16, &[2, 3]).unwrap();
        assert!(rows.push(&[1; 5]).is_none());
        assert!(rows.push(&[1; 6]).is_some() && rows.push(&[2; 6]).is_some() && rows.push(&[3; 6]).is_none());
        assert_eq!(rows.freeze().as_slice::<u16>().unwrap(), [257, 257, 257, 514, 514, 514]);
        assert_eq!(Array::of_rows(DType::U16, &[0, 3]).unwrap().freeze().size(), 0);
        let mut empty = Array::of_rows(DType::U16, &[2, 0]).unwrap();
        assert!(empty.push(&[]).is_some());
        let error = Array::of_rows(DType::I32, &[1 << 45]).err().unwrap();
        assert_eq!(error.kind(), crate::ErrorKind::Config);
    }

    #[test]
    fn rows_share_memory() {
        let a = Array::new(DType::I32, &[3, 2], Buffer::from_vec(vec![1i32, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(a.row(1).unwrap().as_slice::<i32>().unwrap(), [3, 4]);
        assert_eq!(a.row(1).unwrap().shape(), [2]);
        assert_eq!(a.rows(1..3).unwrap().shape(), [2, 2]);
        assert!(a.row(3).is_none());
        assert!(a.as_slice::<u32>().is_err());
        assert_eq!(Array::scalar(-3i16).as_i64(), Some(-3));
    }
}
