//! Ranges of rows.

use super::RowsMut;

/// A range of consecutive rows: the first source row, the first row in the batch, and the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) len: usize,
}

impl Run {
    /// Iterates over the rows of all `runs`, as pairs of source row and row in the batch.
    pub(crate) fn rows(runs: &[Self]) -> impl Iterator<Item = (usize, usize)> {
        runs.iter().flat_map(|run| (run.from..run.from + run.len).zip(run.to..))
    }
}

impl RowsMut {
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
    use crate::element::batch_mut::{BatchMut, ColumnMut};
    use crate::element::{Array, DType, Element};

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
