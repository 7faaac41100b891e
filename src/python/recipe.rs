//! Recipe of a dataset, by which another process makes it again, and its references for the garbage collector.
//!
//! Datasets share pipelines, which hold one reference to each function. The collector must see every reference
//! exactly once. So a dataset shows the functions of its own method, and its parents; the method's arguments are in
//! its recipe. If any dataset has no recipe yet, no functions are shown. Hidden functions are never collected, which
//! is safe.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};

use super::callable::Callable;

/// Datasets without a recipe. Threads with the interpreter read and write it, so it is constant during a collection.
static UNRECORDED: AtomicUsize = AtomicUsize::new(0);

/// The method that made a dataset, and its arguments: a tuple that `gristmill._recipe` writes and reads.
#[derive(Debug)]
pub(crate) struct Recipe {
    made: OnceLock<Py<PyAny>>,
    functions: Vec<Callable>,
    /// Datasets of a list argument, which may have changed since.
    parents: Vec<Py<PyAny>>,
}

default_as!(Recipe, Self::new(Vec::new(), Vec::new()));

impl Recipe {
    pub(crate) fn new(functions: Vec<Callable>, parents: Vec<Py<PyAny>>) -> Self {
        UNRECORDED.fetch_add(1, Ordering::Relaxed);
        Self { made: OnceLock::new(), functions, parents }
    }

    /// Sets the recipe, unless there is a recipe: methods that call other methods set theirs last.
    pub(crate) fn set(&self, recipe: &Bound<'_, PyAny>) {
        if self.made.set(recipe.clone().unbind()).is_ok() {
            UNRECORDED.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.made.get().map(|recipe| recipe.clone_ref(py))
    }

    /// Shows the references of the dataset to the collector.
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

/// Returns the value of `__reduce__` for `pickle`.
pub(crate) fn reduce<'py>(dataset: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    dataset.py().import("gristmill._recipe")?.call_method1("reduce", (dataset,))
}
