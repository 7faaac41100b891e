//! `make_keys`: keys of a pipeline of Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::OrRaise;
use super::interpreter::detached;
use super::item::Item;
use crate::dataset::BoxIter;
use crate::dataset::iter::{keyed_by, lanes_of};
use crate::error::Result;
use crate::keys::{KeyFolder, RecordedKeys};

/// Makes the keys of `dataset` in `folder`, and says of each source what was made.
pub(super) fn make<'py>(
    py: Python<'py>,
    dataset: &BoxIter<Item>,
    folder: PathBuf,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let made = detached(py, || record(dataset, folder)).or_raise(py)?;
    made.iter().map(|keys| as_dict(py, keys)).collect()
}

fn record(dataset: &BoxIter<Item>, folder: PathBuf) -> Result<Vec<RecordedKeys>> {
    let folder = KeyFolder::new(folder);
    let lanes = lanes_of(dataset)?;
    if lanes.is_empty() {
        return keyed_by(dataset)?.iter().map(|keyed| folder.record(&**keyed, |_| ())).collect();
    }
    lanes.iter().map(|lanes| folder.record_lanes(&**lanes, |_| ())).collect()
}

fn as_dict<'py>(py: Python<'py>, keys: &RecordedKeys) -> PyResult<Bound<'py, PyDict>> {
    let RecordedKeys { path, source, records, elements, bytes, was_there } = keys;
    let dict = PyDict::new(py);
    dict.set_item("file", path)?;
    dict.set_item("source", source)?;
    dict.set_item("records", records)?;
    dict.set_item("elements", elements)?;
    dict.set_item("bytes", bytes)?;
    dict.set_item("was_there", was_there)?;
    Ok(dict)
}
