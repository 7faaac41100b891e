//! Batches from which rows can be taken.

use super::RowNumbers;
use crate::element::{Array, Element, Padded, Value};
use crate::error::{Error, Result};

/// Batch from which rows can be taken: an [`Element`] along its leading dimension, a `Vec`, or a [`Padded`] batch.
pub trait RowBatch: Sized {
    /// Returns the number of rows of the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the batch has no rows: its leaves have no rows, or differ in their number.
    fn num_rows(&self) -> Result<usize>;

    /// Takes existing rows in the given order. Consecutive rows share memory with the batch if its type allows it.
    ///
    /// # Errors
    /// As [`num_rows`](Self::num_rows).
    fn take_rows(self, rows: &RowNumbers) -> Result<Self>;

    /// Returns the first array whose name satisfies `is_it`, with its name. Returns `None` if arrays have no names.
    ///
    /// # Errors
    /// Errors of converting the named value to an array.
    fn column(&self, _is_it: &mut dyn FnMut(&str) -> bool) -> Result<Option<(String, Array)>> {
        Ok(None)
    }
}

impl RowBatch for Element {
    fn num_rows(&self) -> Result<usize> {
        Self::num_rows(self)
    }

    fn take_rows(self, rows: &RowNumbers) -> Result<Self> {
        match rows.as_range() {
            Some(range) if range == (0..rows.batch()) => Ok(self),
            Some(range) => self.rows(range),
            None => self.rows_at(&rows.iter().collect::<Vec<_>>()),
        }
    }

    fn column(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Result<Option<(String, Array)>> {
        let named = self.iter().find_map(|(name, value)| match value {
            Value::Array(array) => is_it(name).then(|| (name.to_owned(), array.clone())),
            _ => None,
        });
        Ok(named)
    }
}

impl<T> RowBatch for Vec<T> {
    fn num_rows(&self) -> Result<usize> {
        Ok(self.len())
    }

    fn take_rows(mut self, rows: &RowNumbers) -> Result<Self> {
        if let Some(range) = rows.as_range() {
            self.truncate(range.end);
            self.drain(..range.start.min(self.len()));
            return Ok(self);
        }
        let mut all: Vec<Option<T>> = self.into_iter().map(Some).collect();
        let taken = rows.iter().map(|row| all.get_mut(row).and_then(Option::take));
        taken.collect::<Option<_>>().ok_or_else(|| Error::data("a row of a batch does not exist, or is taken twice"))
    }
}

impl<B: RowBatch> RowBatch for Padded<B> {
    fn num_rows(&self) -> Result<usize> {
        Ok(self.size)
    }

    /// Takes rows and keeps the padding at the end. Returns an error if a padding row would come before a real row.
    fn take_rows(self, rows: &RowNumbers) -> Result<Self> {
        let real = rows.iter().filter(|&row| row < self.real).count();
        if rows.iter().take(real).any(|row| row >= self.real) {
            return Err(Error::data("the rows of a padded batch must have the real rows first"));
        }
        Ok(Self { batch: self.batch.take_rows(rows)?, real, size: rows.len() })
    }

    fn column(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Result<Option<(String, Array)>> {
        self.batch.column(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::*;
    use crate::Array;

    #[test]
    fn rows_are_taken_in_their_order() {
        let batch = || Element::new().with("x", Array::from_vec(vec![10, 11, 12, 13]));
        let element = |part: &Part| {
            let taken = batch().take_rows(&part.rows(4).unwrap()).unwrap();
            taken.array("x").unwrap().as_slice::<i32>().unwrap().to_vec()
        };
        let vector = |part: &Part| vec![10, 11, 12, 13].take_rows(&part.rows(4).unwrap()).unwrap();
        let listed = Part::listed([3, 0], 4).unwrap();
        for (part, expected) in [(Part::of(1, 2), [12, 13]), (Part::of(0, 2), [10, 11]), (listed, [13, 10])] {
            assert_eq!((element(&part), vector(&part)), (expected.to_vec(), expected.to_vec()));
        }
    }

    #[test]
    fn of_a_padded_batch_each_part_knows_its_real_rows() {
        let batch = || Padded { batch: vec![1, 2, 3, 0], real: 3, size: 4 };
        let taken = |part: Part| batch().take_rows(&part.rows(4).unwrap());
        assert_eq!(taken(Part::of(1, 2)).unwrap(), Padded { batch: vec![3, 0], real: 1, size: 2 });
        assert_eq!(taken(Part::of(3, 4)).unwrap(), Padded { batch: vec![0], real: 0, size: 1 });
        assert!(taken(Part::listed([3, 0], 4).unwrap()).is_err());
    }
}
