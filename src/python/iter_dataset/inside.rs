//! Making of streams.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Keywords, PyIterDataset};
use crate::dataset::BoxIter;
use crate::python::callable::Callable;
use crate::python::error::{self, OrRaise};
use crate::python::interpreter::detached;
use crate::python::item::Item;
use crate::python::recipe::Recipe;
use crate::python::streams::Streams;
use crate::python::{arguments, convert, warnings};

impl PyIterDataset {
    pub(super) fn of(streams: Streams) -> Self {
        Self(streams, Recipe::default())
    }

    /// Returns the stream in an item, which a function made for `interleave`.
    pub(in crate::python) fn from_item(item: Item) -> crate::Result<BoxIter<Item>> {
        let stream = |py: Python<'_>| {
            let made = item.into_python(py)?.cast_into::<Self>()?;
            Ok(convert::keeping(made.get().0.dataset(), made.unbind().into_any()))
        };
        Python::attach(stream).map_err(error::caught)
    }

    pub(in crate::python) fn new(py: Python<'_>, streams: Streams) -> PyResult<Self> {
        Ok(Self(streams.checked(py)?, Recipe::default()))
    }

    /// Makes a dataset that calls a Python function.
    pub(super) fn calling(py: Python<'_>, streams: Streams, function: Callable) -> PyResult<Self> {
        Ok(Self(streams.checked(py)?, Recipe::new(vec![function], Vec::new())))
    }

    /// Makes a dataset of several datasets.
    pub(super) fn over_all(py: Python<'_>, streams: Streams, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts = parts.into_iter().map(|part| Py::from(part).into_any()).collect();
        Ok(Self(streams.checked(py)?, Recipe::new(Vec::new(), parts)))
    }

    /// The dataset that a loader runs.
    pub(in crate::python) fn dataset(&self) -> BoxIter<Item> {
        self.0.dataset()
    }

    /// Makes the described source `name`.
    pub(in crate::python) fn source_named(
        name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        let streams = detached(py, || Streams::source(name, arguments)).or_raise(py);
        warnings::log(py);
        let is_bytes = arguments::is_bytes(name, kwargs)?;
        streams.map(|streams| Self::of(if is_bytes { streams.bytes() } else { streams }))
    }

    /// Appends the described stage `name`.
    pub(in crate::python) fn native(
        &self,
        name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        detached(py, || self.0.native(name, arguments)).or_raise(py).map(Self::of)
    }
}
