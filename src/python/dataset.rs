//! Making of datasets of either class.

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::arguments;
use super::callable::Callable;
use super::error::OrRaise;
use super::interpreter::detached;
use super::pipeline::Pipeline;
use super::recipe::Recipe;
use super::warnings;
use crate::error::Result;

/// A class of datasets: a pipeline, and the recipe by which it was made.
pub(super) trait Dataset: PyClass {
    fn with(pipeline: Pipeline, recipe: Recipe) -> Self;

    fn pipeline(&self) -> &Pipeline;

    fn of(pipeline: Pipeline) -> Self {
        Self::with(pipeline, Recipe::default())
    }

    fn new(py: Python<'_>, pipeline: Pipeline) -> PyResult<Self> {
        Ok(Self::of(pipeline.checked(py)?))
    }

    /// Makes a dataset that calls a Python function.
    fn calling(py: Python<'_>, pipeline: Pipeline, function: Callable) -> PyResult<Self> {
        Ok(Self::with(pipeline.checked(py)?, Recipe::new(vec![function], Vec::new())))
    }

    /// Makes a dataset of several datasets.
    fn over_all(py: Python<'_>, pipeline: Pipeline, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts = parts.into_iter().map(|part| Py::from(part).into_any()).collect();
        Ok(Self::with(pipeline.checked(py)?, Recipe::new(Vec::new(), parts)))
    }

    /// Makes the described source `name`. `finish` makes the pipeline of the class of it.
    fn read(
        name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
        finish: fn(Pipeline, &str) -> Result<Pipeline>,
    ) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        let read = detached(py, || finish(Pipeline::source(name, arguments)?, name)).or_raise(py);
        // Shards that are left out are known before the first element is read.
        warnings::log(py);
        let is_bytes = arguments::is_bytes(name, kwargs)?;
        read.map(|pipeline| Self::of(if is_bytes { pipeline.bytes() } else { pipeline }))
    }

    /// Appends the described stage `name`.
    fn native(&self, name: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        let pipeline = self.pipeline();
        detached(py, || pipeline.native(name, arguments)).or_raise(py).map(Self::of)
    }
}
