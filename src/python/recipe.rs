//! Recipe by which a dataset was made, so that another process can make it again; and what that holds, for the garbage collector.
//!
//! Functions lie deep inside pipelines that datasets share, and one reference to each is all there is, while the collector must
//! see every reference exactly once. So a dataset shows the functions that it was itself given, and its parents: those that
//! its method was called with are in its recipe. Where some dataset has no recipe (yet), that would be less than it holds, and no
//! functions are shown: what nobody shows is never collected, which is safe.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};

use super::callable::Callable;

/// Datasets without a recipe. Read and written by who holds the interpreter, so a collection sees one number throughout.
static UNRECORDED: AtomicUsize = AtomicUsize::new(0);

/// The method that made a dataset, and its arguments: a tuple that `gristmill._recipe` writes and reads.
#[derive(Debug)]
pub(crate) struct Recipe {
    made: OnceLock<Py<PyAny>>,
    functions: Vec<Callable>,
    /// Datasets that came in a list, which may have changed since.
    parents: Vec<Py<PyAny>>,
}

impl Default for Recipe {
    fn default() -> Self {
        Self::new(Vec::new(), Vec::new())
    }
}

impl Recipe {
    pub(crate) fn new(functions: Vec<Callable>, parents: Vec<Py<PyAny>>) -> Self {
        UNRECORDED.fetch_add(1, Ordering::Relaxed);
        Self { made: OnceLock::new(), functions, parents }
    }

    /// The first one stands: a method that others are made of is not the one that was called.
    pub(crate) fn set(&self, recipe: &Bound<'_, PyAny>) {
        if self.made.set(recipe.clone().unbind()).is_ok() {
            UNRECORDED.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.made.get().map(|recipe| recipe.clone_ref(py))
    }

    /// Shows the collector what the dataset holds.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.made.get())?;
        self.parents.iter().try_for_each(|parent| visit.call(parent))?;
        if UNRECORDED.load(Ordering::Relaxed) == 0 {
            self.functions.iter().try_for_each(|function| visit.call(function.object()))?;
        }
        Ok(())
    }
}

impl Drop for Recipe {
    fn drop(&mut self) {
        if self.made.get().is_none() {
            UNRECORDED.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers what `pickle` asks of a dataset.
pub(crate) fn reduce<'py>(dataset: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    dataset.py().import("gristmill._recipe")?.call_method1("reduce", (dataset,))
}
