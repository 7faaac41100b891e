//! Python functions as the functions of stages, callable from any thread.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::error;
use super::item::Item;
use crate::error::Result;

/// A Python function; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Callable(Arc<Py<PyAny>>);

impl Callable {
    /// `given` itself, or its method of that name: a transform written as a class.
    pub(crate) fn new(given: &Bound<'_, PyAny>, method: &str) -> PyResult<Self> {
        let function = match given.getattr_opt(method)? {
            Some(bound) if !given.is_callable() && bound.is_callable() => bound,
            _ if given.is_callable() => given.clone(),
            _ => {
                let kind = given.get_type().fully_qualified_name()?;
                let text = format!("needs a function, or an object with a method `{method}`, got {kind}");
                return Err(PyTypeError::new_err(text));
            }
        };
        Ok(Self(Arc::new(function.unbind())))
    }

    /// What it returns for one item.
    pub(crate) fn map(&self, item: Item) -> Result<Item> {
        self.attached(|py, function| function.call1((item.into_python(py)?,)).map(Item::from_python))
    }

    /// What it returns for an item and its index.
    pub(crate) fn map_with_index(&self, index: u64, item: Item) -> Result<Item> {
        self.attached(|py, function| function.call1((index, item.into_python(py)?)).map(Item::from_python))
    }

    /// What it returns for an item and another object, such as random numbers.
    pub(crate) fn map_with(
        &self,
        item: Item,
        other: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyAny>>,
    ) -> Result<Item> {
        self.attached(|py, function| function.call1((item.into_python(py)?, other(py)?)).map(Item::from_python))
    }

    /// Whether it returns something true.
    pub(crate) fn holds(&self, item: &Item) -> Result<bool> {
        self.attached(|py, function| function.call1((item.clone().into_python(py)?,))?.is_truthy())
    }

    /// Everything in what it returns for one item.
    pub(crate) fn flat_map(&self, item: Item) -> Result<Vec<Item>> {
        self.attached(|py, function| {
            let many = function.call1((item.into_python(py)?,))?;
            many.try_iter()?.map(|one| one.map(Item::from_python)).collect()
        })
    }

    /// What it returns for a list of items.
    pub(crate) fn batch(&self, items: Vec<Item>) -> Result<Item> {
        self.attached(|py, function| {
            let items = items.into_iter().map(|item| item.into_python(py)).collect::<PyResult<Vec<_>>>()?;
            function.call1((items,)).map(Item::from_python)
        })
    }

    fn attached<T>(&self, call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| call(py, self.0.bind(py))).map_err(error::caught)
    }
}
