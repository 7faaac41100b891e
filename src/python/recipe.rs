//! How a dataset was made, so that another process can make it again.

use std::sync::OnceLock;

use pyo3::prelude::*;

/// The method that made a dataset, and its arguments: a tuple that `gristmill._recipe` writes and reads.
#[derive(Debug, Default)]
pub(crate) struct Recipe(OnceLock<Py<PyAny>>);

impl Recipe {
    /// The first one stands: a method that others are made of is not the one that was called.
    pub(crate) fn set(&self, recipe: &Bound<'_, PyAny>) {
        let _ = self.0.set(recipe.clone().unbind());
    }

    pub(crate) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.0.get().map(|recipe| recipe.clone_ref(py))
    }
}

/// What `pickle` asks of a dataset.
pub(crate) fn reduce<'py>(dataset: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    dataset.py().import("gristmill._recipe")?.call_method1("reduce", (dataset,))
}
