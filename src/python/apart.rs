//! Batches of Python objects whose rows are separate arrays.
//!
//! A worker copies a batch into shared memory directly after it was made, so it does not stack the rows before.
//! Arrays of one dtype and shape are only listed, and each is copied once, to its place in shared memory. Consecutive
//! arrays in shared memory are not copied at all. The result equals that of `gristmill._tree.stack`, which handles
//! all other cases, too.

use std::ops::Range;

use numpy::PyUntypedArray;
use numpy::{PyArrayDescrMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::buffer;
use crate::element::DType;
#[cfg(all(feature = "workers", target_os = "linux"))]
use crate::wire::foreign::LEAST;

/// Trees in each other deeper than this are left to Python.
const MOST_DEEP: usize = 64;

/// A batch that is not stacked.
#[derive(Debug)]
pub(crate) enum Apart {
    /// Arrays that make one with a dimension more.
    Rows(Rows),
    /// A batch that Python has stacked.
    Whole(Py<PyAny>),
    Parts(Sequence, Vec<Apart>),
    Dict(Vec<(Box<str>, Apart)>),
}

/// Sequence that parts are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    List,
    Tuple,
}

/// Arrays with one dtype and one shape.
#[derive(Debug)]
pub(crate) struct Rows(Py<PyList>);

/// The batch that `gristmill._tree` makes of a list.
pub(crate) fn stack<'py>(objects: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    objects.py().import("gristmill._tree")?.getattr("stack")?.call1((objects,))
}

impl Apart {
    /// The batch of `objects`, of which there is at least one.
    pub(crate) fn of(objects: &Bound<'_, PyList>) -> PyResult<Self> {
        // `stack` repeats the failure, and adds the place in the elements.
        Self::inside(objects, 0).or_else(|_| Ok(Self::Whole(stack(objects)?.unbind())))
    }

    fn inside(objects: &Bound<'_, PyList>, depth: usize) -> PyResult<Self> {
        if let Some(rows) = Rows::of(objects)? {
            return Ok(Self::Rows(rows));
        }
        if depth < MOST_DEEP {
            if let Some(columns) = fields(objects)? {
                let inside = |(name, column)| Ok((name, Self::inside(&column, depth + 1)?));
                return Ok(Self::Dict(columns.into_iter().map(inside).collect::<PyResult<_>>()?));
            }
            if let Some((kind, columns)) = parts(objects)? {
                let columns = columns.iter().map(|column| Self::inside(column, depth + 1));
                return Ok(Self::Parts(kind, columns.collect::<PyResult<_>>()?));
            }
        }
        Ok(Self::Whole(stack(objects)?.unbind()))
    }

    /// Bytes of a row of each column that is not stacked.
    #[cfg(all(feature = "workers", target_os = "linux"))]
    pub(crate) fn row_sizes(&self, py: Python<'_>) -> Vec<usize> {
        match self {
            Self::Rows(rows) => rows.first_bytes(py).into_iter().collect(),
            Self::Whole(_) => Vec::new(),
            Self::Parts(_, parts) => parts.iter().flat_map(|part| part.row_sizes(py)).collect(),
            Self::Dict(fields) => fields.iter().flat_map(|(_, part)| part.row_sizes(py)).collect(),
        }
    }

    /// The batch as Python has it.
    pub(crate) fn stacked<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Rows(rows) => stack(rows.0.bind(py))?,
            Self::Whole(object) => object.bind(py).clone(),
            Self::Parts(kind, parts) => {
                let parts = parts.iter().map(|part| part.stacked(py)).collect::<PyResult<Vec<_>>>()?;
                match kind {
                    Sequence::List => PyList::new(py, parts)?.into_any(),
                    Sequence::Tuple => PyTuple::new(py, parts)?.into_any(),
                }
            }
            Self::Dict(fields) => {
                let dict = PyDict::new(py);
                for (name, part) in fields {
                    dict.set_item(PyString::intern(py, name), part.stacked(py)?)?;
                }
                dict.into_any()
            }
        })
    }
}

impl Rows {
    /// Takes `objects` as rows, if they are arrays that are alike.
    fn of(objects: &Bound<'_, PyList>) -> PyResult<Option<Self>> {
        if !buffer::is_loaded(objects.py())? {
            return Ok(None);
        }
        buffer::ready(objects.py())?;
        let rows = Self(objects.clone().unbind());
        Ok(rows.view(objects.py(), |_, _, _| ()).map(|()| rows))
    }

    /// Has `read` look at their dtype, their shape and the bytes of each; `None` if they are not alike (any more).
    pub(crate) fn view<T>(&self, py: Python<'_>, read: impl FnOnce(DType, &[usize], &[&[u8]]) -> T) -> Option<T> {
        let arrays = self.0.bind(py).iter().map(|object| object.cast_into_exact::<PyUntypedArray>().ok());
        buffer::alike(&arrays.collect::<Option<Vec<_>>>()?, read)
    }
}

#[cfg(all(feature = "workers", target_os = "linux"))]
impl Rows {
    /// Bytes of the first.
    fn first_bytes(&self, py: Python<'_>) -> Option<usize> {
        let first = self.0.bind(py).get_item(0).ok()?.cast_into::<PyUntypedArray>().ok()?;
        Some(first.len() * first.dtype().itemsize())
    }

    /// Returns the addresses of the bytes, after dtype and shape of the batch. The arrays must be large, consecutive
    /// in memory, and without other references.
    pub(crate) fn run(&self, py: Python<'_>) -> Option<(DType, Vec<usize>, Range<usize>)> {
        self.first_bytes(py).filter(|&bytes| bytes >= LEAST)?;
        let rows = self.0.bind(py);
        let mut run: Option<(DType, Vec<usize>, Range<usize>)> = None;
        for row in rows.iter() {
            // The list's own reference, and this one.
            let row = row.cast_into_exact::<PyUntypedArray>().ok().filter(|row| buffer::references(row) == 2)?;
            let (dtype, bytes) = buffer::own_memory(&row)?;
            if let Some((same, shape, run)) = &mut run {
                let follows = *same == dtype && shape[1..] == *row.shape() && run.end == bytes.start;
                run.end = follows.then_some(bytes.end)?;
            } else {
                run = Some((dtype, [&[rows.len()], row.shape()].concat(), bytes))
            }
        }
        run
    }
}

/// A column of each field, under its name.
type Fields<'py> = Vec<(Box<str>, Bound<'py, PyList>)>;

/// Returns the values of each field, if `objects` are dicts with equal names.
fn fields<'py>(objects: &Bound<'py, PyList>) -> PyResult<Option<Fields<'py>>> {
    let dict = |object: Bound<'py, PyAny>| object.cast_into_exact::<PyDict>().ok();
    let Some(dicts) = objects.iter().map(dict).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let width = dicts.first().map_or(0, |first| first.len());
    if !dicts.iter().all(|dict| dict.len() == width) {
        return Ok(None);
    }
    let mut columns = Vec::with_capacity(width);
    for key in dicts.first().into_iter().flat_map(|first| first.keys()) {
        let Ok(name) = key.cast_exact::<PyString>() else { return Ok(None) };
        let Ok(name) = name.to_cow().map(|name| Box::from(&*name)) else { return Ok(None) };
        let values = dicts.iter().map(|dict| dict.get_item(&key)).collect::<PyResult<Option<Vec<_>>>>()?;
        let Some(values) = values else { return Ok(None) };
        columns.push((name, PyList::new(objects.py(), values)?));
    }
    Ok(Some(columns))
}

/// Returns the values at each position, if `objects` are lists or tuples of equal length.
fn parts<'py>(objects: &Bound<'py, PyList>) -> PyResult<Option<(Sequence, Vec<Bound<'py, PyList>>)>> {
    let first = objects.get_item(0)?;
    let kind = if first.is_exact_instance_of::<PyList>() {
        Sequence::List
    } else if first.is_exact_instance_of::<PyTuple>() {
        Sequence::Tuple
    } else {
        return Ok(None);
    };
    let width = first.len()?;
    for object in objects {
        if !object.get_type().is(first.get_type()) || object.len()? != width {
            return Ok(None);
        }
    }
    let column = |place: usize| {
        let values = objects.iter().map(|object| object.get_item(place)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(objects.py(), values)
    };
    Ok(Some((kind, (0..width).map(column).collect::<PyResult<_>>()?)))
}
