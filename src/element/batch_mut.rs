//! Batches that are written in place, column by column, with rows in any order.

use super::stack::is_listed;
use super::{Array, ArrayMut, DType, Element, Name, Value};
use crate::error::{Error, Result};

/// An incomplete batch with the structure of [`Stack::stack`](super::Stack::stack). The first element determines the
/// structure: arrays gain a dimension, trees nest, and any other value becomes a list.
pub(crate) struct BatchMut {
    fields: Vec<(Name, ColumnMut)>,
}

/// A column of a batch.
pub(crate) enum ColumnMut {
    Array(RowsMut),
    List(ListMut),
    Tree(BatchMut),
}

/// Rows of values other than arrays and trees.
pub(crate) struct ListMut {
    values: Vec<Value>,
    rows: usize,
}

/// Rows of arrays of equal dtype and shape.
pub(crate) struct RowsMut {
    first: Array,
    out: ArrayMut,
}

/// A range of consecutive rows: the first source row, the first row in the batch, and the length.
#[cfg(feature = "columns")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) len: usize,
}

#[cfg(feature = "columns")]
impl Run {
    /// Iterates over the rows of all `runs`, as pairs of source row and row in the batch.
    pub(crate) fn rows(runs: &[Self]) -> impl Iterator<Item = (usize, usize)> {
        runs.iter().flat_map(|run| (run.from..run.from + run.len).zip(run.to..))
    }
}

impl BatchMut {
    /// Allocates a batch of `rows` rows with the structure of `first`.
    ///
    /// # Errors
    /// Fails if the rows do not fit in memory.
    pub(crate) fn like(first: &Element, rows: usize) -> Result<Self> {
        let field = |(name, value): &(Name, Value)| Ok((name.clone(), ColumnMut::like(value, rows)?));
        Ok(Self { fields: first.fields.iter().map(field).collect::<Result<_>>()? })
    }

    /// Iterates over the columns in order.
    pub(crate) fn columns_mut(&mut self) -> impl ExactSizeIterator<Item = (&Name, &mut ColumnMut)> {
        self.fields.iter_mut().map(|(name, column)| (&*name, column))
    }

    /// Writes a row; `None` if its structure differs from the first row.
    fn put(&mut self, row: usize, element: Element) -> Option<()> {
        if element.len() != self.fields.len() {
            return None;
        }
        let mut pairs = self.fields.iter_mut().zip(element.into_fields());
        pairs
            .try_for_each(|((name, column), (other, value))| if *name == other { column.put(row, value) } else { None })
    }

    /// Returns the finished batch. Unwritten rows are 0 or null.
    pub(crate) fn finish(self) -> Element {
        Element::from_unique(self.fields.into_iter().map(|(name, column)| (name, column.finish())).collect())
    }
}

impl ColumnMut {
    fn like(first: &Value, rows: usize) -> Result<Self> {
        Ok(match first {
            Value::Array(array) => {
                let mut shape = vec![rows];
                shape.extend_from_slice(array.shape());
                Self::Array(RowsMut { out: Array::builder(array.dtype(), &shape)?, first: array.clone() })
            }
            Value::Tree(tree) => Self::Tree(BatchMut::like(tree, rows)?),
            _ => Self::List(ListMut::new(rows)?),
        })
    }

    /// Writes a row; `None` if its type or shape differs from the first row.
    pub(crate) fn put(&mut self, row: usize, value: Value) -> Option<()> {
        match (self, value) {
            (Self::Array(rows), Value::Array(array)) => {
                rows.holds(array.dtype(), array.shape()).then_some(())?;
                rows.copy(row, array.bytes())?;
            }
            (Self::Tree(tree), Value::Tree(element)) => tree.put(row, element)?,
            (Self::List(list), value) => list.put(row, value)?,
            _ => return None,
        }
        Some(())
    }

    fn finish(self) -> Value {
        match self {
            Self::Array(rows) => rows.out.freeze().into(),
            Self::List(list) => list.finish(),
            Self::Tree(tree) => tree.finish().into(),
        }
    }
}

impl ListMut {
    fn new(rows: usize) -> Result<Self> {
        let mut values = Vec::new();
        let refused = |_| Error::config(format!("a list of {rows} rows does not fit in memory"));
        values.try_reserve_exact(rows).map_err(refused)?;
        Ok(Self { values, rows })
    }

    /// Writes a row; `None` if the row does not exist or the value does not belong in a list.
    #[inline]
    pub(crate) fn put(&mut self, row: usize, value: Value) -> Option<()> {
        is_listed(&value).then_some(())?;
        if row == self.values.len() && row < self.rows {
            self.values.push(value);
            return Some(());
        }
        self.put_anywhere(row, value)
    }

    /// Writes a row out of order.
    fn put_anywhere(&mut self, row: usize, value: Value) -> Option<()> {
        if self.values.len() < self.rows {
            self.values.resize(self.rows, Value::Null);
        }
        *self.values.get_mut(row)? = value;
        Some(())
    }

    fn finish(mut self) -> Value {
        self.values.resize(self.rows, Value::Null);
        Value::List(self.values)
    }
}

impl RowsMut {
    /// Returns true if the rows have this dtype and shape.
    pub(crate) fn holds(&self, dtype: DType, shape: &[usize]) -> bool {
        (self.first.dtype(), self.first.shape()) == (dtype, shape)
    }

    /// Writes contiguous rows from row `to` on; `None` if they do not fit.
    pub(crate) fn copy(&mut self, to: usize, rows: &[u8]) -> Option<()> {
        let start = to.checked_mul(self.first.bytes().len())?;
        self.out.bytes_mut().get_mut(start..start.checked_add(rows.len())?)?.copy_from_slice(rows);
        Some(())
    }

    #[cfg(feature = "columns")]
    /// Writes `runs` of rows of `data`, an array of contiguous rows; `None` if a run is out of bounds.
    pub(crate) fn copy_runs(&mut self, runs: &[Run], data: &[u8]) -> Option<()> {
        let size = self.first.bytes().len();
        // A row of a single number is moved as a value, which costs a fraction of a copy of variable length.
        match size {
            1 => return move_runs::<1>(self.out.bytes_mut(), runs, data),
            2 => return move_runs::<2>(self.out.bytes_mut(), runs, data),
            4 => return move_runs::<4>(self.out.bytes_mut(), runs, data),
            8 => return move_runs::<8>(self.out.bytes_mut(), runs, data),
            _ => {}
        }
        runs.iter().try_for_each(|run| {
            let start = run.from.checked_mul(size)?;
            self.copy(run.to, data.get(start..start.checked_add(run.len.checked_mul(size)?)?)?)
        })
    }
}

#[cfg(feature = "columns")]
fn move_runs<const SIZE: usize>(out: &mut [u8], runs: &[Run], data: &[u8]) -> Option<()> {
    let ((out, _), (data, _)) = (out.as_chunks_mut::<SIZE>(), data.as_chunks::<SIZE>());
    for run in runs {
        if run.len == 1 {
            *out.get_mut(run.to)? = *data.get(run.from)?;
        } else {
            let rows = data.get(run.from..run.from.checked_add(run.len)?)?;
            out.get_mut(run.to..run.to.checked_add(run.len)?)?.copy_from_slice(rows);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Stack;

    fn element(x: i32) -> Element {
        let inner = Element::new().with("wide", Array::from_vec(vec![x; 3])).with("text", &*x.to_string());
        Element::new().with("x", Array::scalar(x)).with("in", inner)
    }

    #[test]
    fn rows_in_any_order_are_a_stack() {
        let mut batch = BatchMut::like(&element(7), 4).unwrap();
        [2, 0, 3, 1].into_iter().for_each(|row| batch.put(row, element(row as i32)).unwrap());
        assert!(batch.put(4, element(4)).is_none());
        assert_eq!(batch.finish(), Element::stack((0..4).map(element).collect()).unwrap());
    }

    #[test]
    fn what_is_not_like_the_first_is_refused() {
        let mut batch = BatchMut::like(&element(0), 2).unwrap();
        for other in [
            element(1).with("y", "more"),
            element(1).with("x", Array::scalar(1i64)),
            element(1).with("x", Array::from_vec(vec![1i32])),
            element(1).with("x", Value::Null),
            element(1).with("in", Element::new()),
            Element::new().with("y", Array::scalar(1i32)).with("in", Element::new()),
        ] {
            assert!(batch.put(1, other).is_none());
        }
    }

    #[cfg(feature = "columns")]
    #[test]
    fn runs_go_where_they_belong() {
        for width in [1usize, 2, 3] {
            let row = |x: usize| vec![x as i32; width];
            let first = Element::new().with("x", Array::from_vec(row(0)));
            let data: Vec<i32> = (0..10).flat_map(row).collect();
            let mut batch = BatchMut::like(&first, 4).unwrap();
            let (_, column) = batch.columns_mut().next().unwrap();
            let ColumnMut::Array(rows) = column else { panic!("numbers are an array") };
            assert!(rows.holds(DType::I32, &[width]) && !rows.holds(DType::I32, &[]));
            let runs = [Run { from: 5, to: 1, len: 3 }, Run { from: 9, to: 0, len: 1 }];
            rows.copy_runs(&runs, bytemuck::cast_slice(&data)).unwrap();
            for beyond in
                [Run { from: 9, to: 0, len: 2 }, Run { from: 0, to: 3, len: 2 }, Run { from: 10, to: 0, len: 1 }]
            {
                assert!(rows.copy_runs(&[beyond], bytemuck::cast_slice(&data)).is_none());
            }
            let expected: Vec<i32> = [9, 5, 6, 7].into_iter().flat_map(row).collect();
            assert_eq!(batch.finish().array("x").unwrap().as_slice::<i32>().unwrap(), expected);
        }
    }
}
