//! Making of streams.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Keywords, PyIterDataset};
use crate::dataset::BoxIter;
use crate::python::convert;
use crate::python::dataset::Dataset;
use crate::python::error;
use crate::python::item::Item;
use crate::python::pipeline::Pipeline;
use crate::python::recipe::Recipe;
use crate::spec::chain::Border;

impl Dataset for PyIterDataset {
    fn with(pipeline: Pipeline, recipe: Recipe) -> Self {
        Self(pipeline, recipe)
    }

    fn pipeline(&self) -> &Pipeline {
        &self.0
    }
}

impl PyIterDataset {
    /// Returns the stream in an item, which a function made for `interleave`.
    pub(in crate::python) fn from_item(item: Item) -> crate::Result<BoxIter<Item>> {
        let stream = |py: Python<'_>| {
            let made = item.into_python(py)?.cast_into::<Self>()?;
            Ok(convert::keeping(made.get().0.dataset(), made.unbind().into_any()))
        };
        Python::attach(stream).map_err(error::caught)
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
        Self::read(name, args, kwargs, |pipeline, _| Ok(pipeline.into_stream(Border::default())))
    }
}
