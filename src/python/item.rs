//! Elements of pipelines of the Python package.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyList, PyTuple};

use super::apart::{self, Apart};
use super::buffer::Access;
use super::interpreter::released;
use super::{buffer, element, error, owned, process};
use crate::element::{Array, Buffer, Element, Stack, Tree, Value};
use crate::error::Result;

/// An element of a Python pipeline: native for as long as it can be.
#[derive(Debug)]
pub(crate) enum Item {
    Int(i64),
    Float(f64),
    /// Numbers that were batched.
    Array(Box<Array>),
    Element(Element),
    /// One of each of several datasets.
    Tuple(Vec<Item>),
    /// An object that came from a worker process, and was Python's there.
    Tree(Box<Tree>),
    /// An object that a Python function returned or a Python source gave.
    Python(Py<PyAny>),
    /// A batch of items, before it leaves a worker.
    Apart(Arc<Apart>),
}

impl Item {
    /// Converts a Python object. A plain number is stored as a number, which looks equal to functions downstream.
    pub(crate) fn from_python(object: Bound<'_, PyAny>) -> Self {
        if object.is_exact_instance_of::<PyInt>() {
            if let Ok(number) = object.extract() {
                return Self::Int(number);
            }
        } else if object.is_exact_instance_of::<PyFloat>()
            && let Ok(number) = object.extract()
        {
            return Self::Float(number);
        }
        Self::Python(object.unbind())
    }

    /// Converts the result of a function or a source. Later changes of the user's object do not change the item.
    pub(crate) fn of_result(object: Bound<'_, PyAny>) -> PyResult<Self> {
        let py = object.py();
        match Self::from_python(object) {
            Self::Python(object) => Ok(Self::Python(owned::owned(object.into_bound(py))?.unbind())),
            number => Ok(number),
        }
    }

    /// The Python object: a dict of arrays and text for an element.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.into_python_for(py, Access::Read)
    }

    /// Converts to Python. Native arrays are writable if `access` permits.
    pub(crate) fn into_python_for(self, py: Python<'_>, access: Access) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Int(number) => Ok(number.into_pyobject(py)?.into_any()),
            Self::Float(number) => Ok(number.into_pyobject(py)?.into_any()),
            Self::Array(array) => buffer::to_numpy(py, *array, access),
            Self::Element(element) => Ok(element::to_dict(py, element, access)?.into_any()),
            Self::Tuple(items) => {
                let items =
                    items.into_iter().map(|item| item.into_python_for(py, access)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
            Self::Tree(tree) => tree.into_python(py, access),
            Self::Python(object) => Ok(object.into_bound(py)),
            Self::Apart(batch) => batch.stacked(py),
        }
    }

    /// Copies each native array with other views, so that its memory is exclusive.
    pub(crate) fn into_exclusive(self) -> Self {
        match self {
            Self::Array(array) => Self::Array(Box::new(array.into_exclusive())),
            Self::Element(element) => Self::Element(exclusive(element)),
            Self::Tuple(items) => Self::Tuple(items.into_iter().map(Self::into_exclusive).collect()),
            other => other,
        }
    }

    /// Python's `None`.
    pub(crate) fn none() -> Self {
        Python::attach(|py| Self::from_python(py.None().into_bound(py)))
    }

    /// Whether it is Python's `None`.
    pub(crate) fn is_none(&self) -> bool {
        match self {
            Self::Python(object) => Python::attach(|py| object.is_none(py)),
            // As it comes out of a worker.
            Self::Tree(tree) => matches!(**tree, Tree::None),
            _ => false,
        }
    }

    /// The bytes that a native source gave, or itself.
    fn into_bytes(self) -> Result<Buffer, Self> {
        match self {
            Self::Tree(tree) => match *tree {
                Tree::Bytes(bytes) => Ok(bytes),
                tree => Err(Self::Tree(Box::new(tree))),
            },
            other => Err(other),
        }
    }

    /// Makes what native stages take; bytes are a record.
    pub(crate) fn into_element(self) -> Result<Element> {
        match self {
            Self::Element(element) => Ok(element),
            other => match other.into_bytes() {
                Ok(record) => Ok(element::of_record(record)),
                Err(other) => Python::attach(|py| {
                    let object = other.into_python(py).map_err(error::caught)?;
                    element::from_object(&object)
                }),
            },
        }
    }
}

impl Clone for Item {
    fn clone(&self) -> Self {
        match self {
            Self::Int(number) => Self::Int(*number),
            Self::Float(number) => Self::Float(*number),
            Self::Array(array) => Self::Array(array.clone()),
            Self::Element(element) => Self::Element(element.clone()),
            Self::Tuple(items) => Self::Tuple(items.clone()),
            Self::Tree(tree) => Self::Tree(tree.clone()),
            Self::Python(object) => Python::attach(|py| Self::Python(object.clone_ref(py))),
            Self::Apart(batch) => Self::Apart(batch.clone()),
        }
    }
}

/// As Grain stacks: every leaf gains a dimension. Items that are native are stacked without Python.
impl Stack for Item {
    type Batch = Self;

    fn stack(items: Vec<Self>) -> Result<Self> {
        match items.first() {
            Some(Self::Int(_)) => numbers(items, |item| if let Self::Int(n) = item { Some(*n) } else { None }),
            Some(Self::Float(_)) => numbers(items, |item| if let Self::Float(x) = item { Some(*x) } else { None }),
            Some(Self::Element(_)) if items.iter().all(|item| matches!(item, Self::Element(_))) => {
                let elements = items.into_iter().map(Self::into_element).collect::<Result<Vec<_>>>()?;
                Ok(Self::Element(released(|| Element::stack(elements))?))
            }
            Some(Self::Tuple(first)) => tuples(first.len(), items),
            _ => in_python(items),
        }
    }

    fn padding(&self) -> Self {
        match self {
            Self::Int(_) => Self::Int(0),
            Self::Float(_) => Self::Float(0.0),
            Self::Element(element) => Self::Element(element.padding()),
            Self::Tuple(items) => Self::Tuple(items.iter().map(Self::padding).collect()),
            other => other.clone(),
        }
    }

    #[inline]
    fn nbytes(&self) -> usize {
        match self {
            Self::Int(_) | Self::Float(_) => size_of::<i64>(),
            Self::Array(array) => array.bytes().len(),
            Self::Element(element) => element.nbytes(),
            Self::Tuple(items) => items.iter().map(Self::nbytes).sum(),
            Self::Tree(tree) => tree.nbytes(),
            Self::Python(_) | Self::Apart(_) => 0,
        }
    }
}

fn exclusive(element: Element) -> Element {
    let room = Element::with_capacity(element.len());
    element.into_fields().fold(room, |done, (name, value)| done.with(name, exclusive_value(value)))
}

fn exclusive_value(value: Value) -> Value {
    match value {
        Value::Array(array) => array.into_exclusive().into(),
        Value::List(items) => Value::List(items.into_iter().map(exclusive_value).collect()),
        Value::Tree(tree) => exclusive(tree).into(),
        other => other,
    }
}

/// Makes an array of numbers with one type.
fn numbers<T: crate::element::Scalar + Send + Sync>(
    items: Vec<Item>,
    get: impl Fn(&Item) -> Option<T>,
) -> Result<Item> {
    let mut numbers = Vec::with_capacity(items.len());
    for item in &items {
        match get(item) {
            Some(number) => numbers.push(number),
            None => return in_python(items),
        }
    }
    Ok(Item::Array(Box::new(Array::from_vec(numbers))))
}

/// A batch of tuples is a tuple of batches.
fn tuples(width: usize, items: Vec<Item>) -> Result<Item> {
    if !items.iter().all(|item| matches!(item, Item::Tuple(parts) if parts.len() == width)) {
        return in_python(items);
    }
    let mut columns: Vec<Vec<Item>> = (0..width).map(|_| Vec::with_capacity(items.len())).collect();
    for item in items {
        if let Item::Tuple(parts) = item {
            columns.iter_mut().zip(parts).for_each(|(column, part)| column.push(part));
        }
    }
    columns.into_iter().map(Item::stack).collect::<Result<_>>().map(Item::Tuple)
}

/// Stacks trees of Python objects, leaf by leaf; in a worker each row is copied once, when the batch leaves it.
fn in_python(items: Vec<Item>) -> Result<Item> {
    Python::attach(|py| {
        let objects = items.into_iter().map(|item| item.into_python(py)).collect::<PyResult<Vec<_>>>()?;
        let objects = PyList::new(py, objects)?;
        if process::is_worker() {
            return Ok(Item::Apart(Arc::new(Apart::of(&objects)?)));
        }
        Ok(Item::Python(apart::stack(&objects)?.unbind()))
    })
    .map_err(error::caught)
}
