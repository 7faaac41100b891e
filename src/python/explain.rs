//! Explanations of a pipeline, which is not run to its end.

use pyo3::prelude::*;

use super::error::OrRaise;
use super::interpreter::detached;
use super::item::Item;
use super::report::as_dict;
use crate::cli::explain::{Explanation, First};
use crate::dataset::BoxIter;
use crate::report::html::notebook;

/// Explanation of a pipeline: `str` returns a text, `as_dict` its values.
#[pyclass(name = "Explanation", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyExplanation(Explanation);

/// A first element as Python describes it: its leaves, and their bytes.
type Leaves = Option<(Vec<(String, String)>, usize)>;

/// Explains `dataset`, which `pipeline` is the stream of.
pub(super) fn explain(
    dataset: &Bound<'_, PyAny>,
    pipeline: &BoxIter<Item>,
    threads: usize,
    buffer: usize,
) -> PyResult<PyExplanation> {
    let py = dataset.py();
    let first: Leaves = py.import("gristmill._spec")?.call_method1("first", (dataset,))?.extract()?;
    let first = first.map(|(leaves, nbytes)| First { leaves, nbytes });
    detached(py, || Explanation::new(pipeline, first, threads.max(1), buffer)).or_raise(py).map(PyExplanation)
}

#[pymethods]
impl PyExplanation {
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn _repr_html_(&self) -> String {
        notebook(&self.0.to_string())
    }

    /// Returns stages, memory in bytes, fingerprint and the spec of the first element.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, &self.0)
    }
}
