//! Python functions as the functions of stages, callable from any thread.

use std::sync::Arc;

use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyIterator, PyList};

use super::error;
use super::interpreter::attach;
use super::item::Item;
use super::json;
use super::owned;
use crate::dataset::map::Many;
use crate::element::Element;
use crate::error::Result;
use crate::spec::columns::NamedFn;

/// A Python function. Clones share the function.
#[derive(Clone, Debug)]
pub(crate) struct Callable(Arc<Py<PyAny>>);

impl Callable {
    /// Returns `given`, or its method `method` if it is a transform class.
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

    /// Wraps an object that is not called.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Self {
        Self(Arc::new(object.clone().unbind()))
    }

    /// The function itself.
    pub(crate) fn object(&self) -> &Py<PyAny> {
        &self.0
    }

    /// Calls the function for one item.
    pub(crate) fn map(&self, item: Item) -> Result<Item> {
        self.attached(|py, function| function.call1((item.into_python(py)?,)).and_then(Item::of_result))
    }

    /// Returns a stage with this function.
    pub(crate) fn map_stage(self) -> NamedFn<Item, Item> {
        let each = self.clone();
        NamedFn::map("map", String::new(), move |item| each.map(item))
            .foreign()
            .together(move |many| self.map_many(many))
    }

    /// Returns a filter with this condition.
    pub(crate) fn filter_stage(self) -> NamedFn<Item, Item> {
        self.filter_stage_of(Item::clone)
    }

    /// Returns a filter with this condition for native elements.
    pub(crate) fn native_filter_stage(self) -> NamedFn<Element, Element> {
        self.filter_stage_of(|element: &Element| Item::Element(element.clone()))
    }

    fn filter_stage_of<T: 'static>(self, shown: impl Fn(&T) -> Item + Copy + Send + Sync + 'static) -> NamedFn<T, T> {
        let each = self.clone();
        NamedFn::filter("filter", String::new(), move |element| each.holds(shown(element)))
            .foreign()
            .together(move |many| self.filter_many(many, shown))
    }

    /// Calls the function for each of many items.
    fn map_many(&self, many: Many<Item>) -> Many<Item> {
        attach(|py| {
            let mut objects = Vec::with_capacity(many.items().len());
            let places = many.filter_map(|_, item| {
                objects.push(item.into_python(py).map_err(error::caught)?);
                Ok(Some(()))
            });
            self.called(places, objects, py, |(), object| Item::of_result(object).map(Some))
        })
    }

    /// Returns the elements for which the function returns a true value. The function receives `shown` of each.
    fn filter_many<T>(&self, many: Many<T>, shown: impl Fn(&T) -> Item) -> Many<T> {
        attach(|py| {
            let mut objects = Vec::with_capacity(many.items().len());
            let elements = many.filter_map(|_, element| {
                objects.push(shown(&element).into_python(py).map_err(error::caught)?);
                Ok(Some(element))
            });
            self.called(elements, objects, py, |element, object| Ok(object.is_truthy()?.then_some(element)))
        })
    }

    /// Combines each of `many` with the function's result for its object, by `becomes`. The interpreter's own `map`
    /// calls the function, because `map` makes no tuple for each call.
    fn called<'py, T, U>(
        &self,
        many: Many<T>,
        objects: Vec<Bound<'py, PyAny>>,
        py: Python<'py>,
        becomes: impl Fn(T, Bound<'py, PyAny>) -> PyResult<Option<U>>,
    ) -> Many<U> {
        let made = PyList::new(py, objects).and_then(|objects| Ok((self.over(&objects)?, objects)));
        let (mut results, objects) = match made {
            Ok(made) => made,
            Err(failed) => return many.filter_map(|_, _| Err(error::caught(failed.clone_ref(py)))),
        };
        let mut place = 0;
        // Iteration continues after an exception.
        many.filter_map(|_, item| {
            let result = results.next().unwrap_or_else(|| Err(PyStopIteration::new_err(())));
            // A function may pass its argument on, so no other reference may remain.
            let done = objects.set_item(place, py.None());
            place += 1;
            result
                .and_then(|object| done.map(|()| object))
                .and_then(|object| becomes(item, object))
                .map_err(error::caught)
        })
    }

    /// Returns an iterator over the function's results for a list.
    fn over<'py>(&self, objects: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyIterator>> {
        let py = objects.py();
        static MAP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let map = MAP.get_or_try_init(py, || Ok::<_, PyErr>(py.import("builtins")?.getattr("map")?.unbind()))?;
        map.bind(py).call1((self.0.bind(py), objects))?.try_iter()
    }

    /// Calls the function for an item and its index.
    pub(crate) fn map_with_index(&self, index: u64, item: Item) -> Result<Item> {
        self.attached(|py, function| function.call1((index, item.into_python(py)?)).and_then(Item::of_result))
    }

    /// Calls the function for an item and another object, such as random numbers.
    pub(crate) fn map_with(
        &self,
        item: Item,
        other: impl FnOnce(Python<'_>) -> PyResult<Bound<'_, PyAny>>,
    ) -> Result<Item> {
        self.attached(|py, function| function.call1((item.into_python(py)?, other(py)?)).and_then(Item::of_result))
    }

    /// Calls the function for a state and an item. The function returns the next state and the result.
    pub(crate) fn scan(&self, state: &mut serde_json::Value, item: Item) -> Result<Item> {
        self.attached(|py, function| {
            let result = function.call1((json::to_python(py, state)?, item.into_python(py)?))?;
            let (next, made) = result.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "scan: the function must return (state, element), and returned {result:?}"
                ))
            })?;
            *state = json::of_python(&next)?;
            Item::of_result(made)
        })
    }

    /// Whether the function returns a true value.
    fn holds(&self, item: Item) -> Result<bool> {
        self.attached(|py, function| function.call1((item.into_python(py)?,))?.is_truthy())
    }

    /// Returns all items of the function's result for an item.
    pub(crate) fn flat_map(&self, item: Item) -> Result<Vec<Item>> {
        self.attached(|py, function| owned::owned_all(function.call1((item.into_python(py)?,))?))
    }

    /// Calls the function for a list of items.
    pub(crate) fn batch(&self, items: Vec<Item>) -> Result<Item> {
        self.attached(|py, function| {
            let items = items.into_iter().map(|item| item.into_python(py)).collect::<PyResult<Vec<_>>>()?;
            function.call1((items,)).and_then(Item::of_result)
        })
    }

    fn attached<T>(&self, call: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        attach(|py| call(py, self.0.bind(py))).map_err(error::caught)
    }
}
