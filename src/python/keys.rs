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

/// Makes the keys of `dataset`, the pipeline of `object`, in `folder`. Returns a dict for each source.
pub(super) fn make<'py>(
    object: &Bound<'py, PyAny>,
    dataset: &BoxIter<Item>,
    folder: PathBuf,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let (py, functions) = (object.py(), functions(object)?);
    let made = detached(py, || record(dataset, KeyFolder::new(folder).functions(functions))).or_raise(py)?;
    made.iter().map(|keys| as_dict(py, keys)).collect()
}

/// A name of the functions of a dataset by which their keys are found: see `gristmill._functions`.
pub(super) fn functions(object: &Bound<'_, PyAny>) -> PyResult<String> {
    object.py().import("gristmill._functions")?.call_method1("named", (object,))?.extract()
}

fn record(dataset: &BoxIter<Item>, folder: KeyFolder) -> Result<Vec<RecordedKeys>> {
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
