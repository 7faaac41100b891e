//! Grain's permutation, one index at a time.

use std::cell::RefCell;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::error::OrRaise;
use crate::rng::IndexShuffle;

/// Parameters of a permutation: the highest index, the seed and the rounds.
type Key = (u64, u32, u32);

thread_local! {
    /// The permutation used last: its keys, or the table of a small one, cost more than an index does.
    static LAST: RefCell<Option<(Key, IndexShuffle)>> = const { RefCell::new(None) };
}

/// Returns the place of `index` in Grain's permutation of `0..=max_index`.
///
/// Args:
///     index (int): From 0 to `max_index`.
///     max_index (int): The highest index.
///     seed (int): From 0 to 2^32 - 1.
///     rounds (int): Rounds of the cipher; Grain takes 4.
///
/// Raises:
///     ValueError: `index` is above `max_index`.
#[pyfunction]
pub(crate) fn index_shuffle(py: Python<'_>, index: u64, max_index: u64, seed: u32, rounds: u32) -> PyResult<u64> {
    if index > max_index {
        return Err(PyValueError::new_err(format!("index must be in [0, max_index], got {index} of {max_index}")));
    }
    let key = (max_index, seed, rounds);
    if let Some(found) = LAST.with_borrow(|last| last.as_ref().filter(|(of, _)| *of == key).map(|(_, s)| s.get(index)))
    {
        return Ok(found);
    }
    let shuffle = IndexShuffle::new(max_index, seed, rounds).or_raise(py)?;
    let found = shuffle.get(index);
    LAST.set(Some((key, shuffle)));
    Ok(found)
}
