//! Batches that are written in place, column by column, with rows in any order.

#[cfg(feature = "columns")]
mod runs;

pub(crate) use self::runs::Run;
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
}
