//! NumPy's generators on the random numbers of an element.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::callable::Callable;
use super::item::Item;
use crate::error::Result;
use crate::rng::ElementRng;

/// A function of an element and a `numpy.random.Generator`.
#[derive(Clone)]
pub(crate) struct RandomFunction {
    function: Callable,
    /// The Python object that keeps a generator for each thread.
    generators: Arc<PyOnceLock<Py<PyAny>>>,
}

impl RandomFunction {
    pub(crate) fn new(function: Callable) -> Self {
        Self { function, generators: Arc::new(PyOnceLock::new()) }
    }

    /// Calls it with the generator that NumPy makes for this seed and index.
    pub(crate) fn call(&self, item: Item, rng: &ElementRng) -> Result<Item> {
        let (key, index) = rng.place();
        self.function.map_with(item, |py| {
            let make =
                || Ok::<_, PyErr>(py.import("gristmill._random")?.getattr("Generators")?.call1((key,))?.unbind());
            let generators = self.generators.get_or_try_init(py, make)?;
            generators.bind(py).call_method1("at", (index,))
        })
    }
}
