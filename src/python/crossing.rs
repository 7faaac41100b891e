//! Items on their way from a worker: arrays, text and numbers as they are, anything else pickled leaf by leaf.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::apart::{Apart, Sequence};
use super::item::Item;
use super::{buffer, error};
use crate::element::{Element, Tree};
use crate::error::{Error, Result};
use crate::wire::tree::{
    self, BYTES, DICT, FALSE, FLOAT, INT, LIST, NONE, PICKLED, STR, TRUE, TUPLE, pair, write_array, write_bytes,
    write_rows,
};
use crate::wire::{Cross, Crossing, Entry, In, Out, Stop, foreign};

/// An item, and the pieces that one element becomes.
pub(crate) const CROSSINGS: &[Entry] = &[&Crossing::<Item>::OF, &Crossing::<Vec<Item>>::OF];

/// Tags besides those of trees: native elements, and tuples of items.
const ELEMENT: u64 = tree::TAGS;
const ITEMS: u64 = tree::TAGS + 1;

impl Cross for Item {
    const KIND: u32 = 64;

    fn write(&self, out: &mut Out<'_>) -> Result<(), Stop> {
        match self {
            Self::Int(number) => pair(out, INT, *number as u64),
            Self::Float(number) => pair(out, FLOAT, number.to_bits()),
            Self::Array(array) => write_array(out, array.dtype(), array.shape(), array.bytes()),
            Self::Element(element) => {
                out.word(ELEMENT)?;
                element.write(out)
            }
            Self::Tuple(items) => {
                pair(out, ITEMS, items.len() as u64)?;
                out.enter()?;
                items.iter().try_for_each(|item| item.write(out))?;
                out.leave();
                Ok(())
            }
            Self::Tree(tree) => tree.write(out),
            Self::Python(object) => Python::attach(|py| write_object(object.bind(py), Some(1), out)),
            Self::Apart(batch) => Python::attach(|py| {
                foreign::rows_were(&batch.row_sizes(py));
                write_batch(py, batch, out)
            }),
        }
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        match from.word()? {
            ELEMENT => Element::read(from).map(Self::Element),
            ITEMS => tree::many(from, Self::read).map(Self::Tuple),
            tag => Ok(match tree::read(tag, from)? {
                Tree::Int(number) => Self::Int(number),
                Tree::Float(number) => Self::Float(number),
                Tree::Array(array) => Self::Array(Box::new(array)),
                tree => Self::Tree(Box::new(tree)),
            }),
        }
    }
}

/// Expected number of references to an object, if its container has no other references.
type Holders = Option<isize>;

/// Returns the expected references to an item of a container without other references: the container's, and that of
/// the list with its items.
fn items_of(value: &Bound<'_, PyAny>, holders: Holders) -> Holders {
    holders.filter(|&holders| buffer::references(value) == holders).map(|_| 2)
}

/// Writes an object of exactly a known type. Objects of subclasses are pickled.
fn write_object(value: &Bound<'_, PyAny>, holders: Holders, out: &mut Out<'_>) -> Result<(), Stop> {
    if value.is_none() {
        return out.word(NONE);
    }
    if let Ok(truth) = value.cast_exact::<PyBool>() {
        return out.word(if truth.is_true() { TRUE } else { FALSE });
    }
    if let Ok(number) = value.cast_exact::<PyInt>() {
        return match number.extract::<i64>() {
            Ok(number) => pair(out, INT, number as u64),
            Err(_) => write_pickled(value, out),
        };
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return pair(out, FLOAT, number.value().to_bits());
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        let Ok(text) = text.to_cow() else { return write_pickled(value, out) };
        out.word(STR)?;
        return out.text(&text);
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        out.word(BYTES)?;
        return write_bytes(out, bytes.as_bytes());
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return write_dict(dict, items_of(value, holders), out);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return write_all(LIST, &list.iter().collect::<Vec<_>>(), items_of(value, holders), out);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return write_all(TUPLE, &tuple.iter().collect::<Vec<_>>(), items_of(value, holders), out);
    }
    // Before there are more references to it here.
    let alone = holders.is_some_and(|holders| buffer::references(value) == holders);
    if let Some(array) = numpy_array(value).map_err(error::caught)? {
        if alone
            && let Some((dtype, bytes)) = buffer::own_memory(&array)
            && tree::give_array(out, dtype, array.shape(), bytes)?
        {
            return Ok(());
        }
        let written =
            buffer::view(&array, |dtype, shape, bytes| write_array(out, dtype, shape, bytes)).map_err(Stop::from)?;
        written.unwrap_or_else(|| write_pickled(value, out))
    } else {
        write_pickled(value, out)
    }
}

/// Returns `value` if it is an array of NumPy, or an array of a NumPy scalar.
fn numpy_array<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
    static GENERIC: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = value.py();
    // It is not imported only to learn that.
    if GENERIC.get(py).is_none() && !buffer::is_loaded(py)? {
        return Ok(None);
    }
    let generic = GENERIC.get_or_try_init(py, || {
        buffer::ready(py)?;
        buffer::numpy_module(py)?.getattr("generic").map(Bound::unbind)
    })?;
    if let Ok(array) = value.cast_exact::<PyUntypedArray>() {
        // An array without dimensions would come back as a number.
        return Ok((array.ndim() > 0).then(|| array.clone()));
    }
    if !value.is_instance(generic.bind(py))? {
        return Ok(None);
    }
    let array = buffer::numpy_module(py)?.call_method1("asarray", (value,))?;
    Ok(array.cast_into().ok())
}

fn write_dict(dict: &Bound<'_, PyDict>, holders: Holders, out: &mut Out<'_>) -> Result<(), Stop> {
    // Taken out first: pickling a value runs code that may change the dict.
    let fields: Vec<_> = dict.iter().collect();
    let name = |key: &Bound<'_, PyAny>| key.cast_exact::<PyString>().is_ok_and(|name| name.to_cow().is_ok());
    if !fields.iter().all(|(key, _)| name(key)) {
        return write_pickled(dict, out);
    }
    pair(out, DICT, fields.len() as u64)?;
    out.enter()?;
    for (key, value) in &fields {
        let name = key.cast::<PyString>().map_err(|e| error::caught(e.into()))?;
        out.text(&name.to_cow().map_err(error::caught)?)?;
        write_object(value, holders, out)?;
    }
    out.leave();
    Ok(())
}

/// Writes a batch. Consecutive rows in the extent are the batch already; other rows are copied once, to their place.
fn write_batch(py: Python<'_>, batch: &Apart, out: &mut Out<'_>) -> Result<(), Stop> {
    match batch {
        Apart::Whole(object) => write_object(object.bind(py), Some(1), out),
        Apart::Rows(rows) => {
            if let Some((dtype, shape, bytes)) = rows.run(py)
                && tree::give_array(out, dtype, &shape, bytes)?
            {
                return Ok(());
            }
            let written = rows.view(py, |dtype, shape, rows| write_rows(out, dtype, shape, rows));
            written.unwrap_or_else(|| Err(changed().into()))
        }
        Apart::Parts(kind, parts) => {
            pair(out, if *kind == Sequence::List { LIST } else { TUPLE }, parts.len() as u64)?;
            out.enter()?;
            parts.iter().try_for_each(|part| write_batch(py, part, out))?;
            out.leave();
            Ok(())
        }
        Apart::Dict(fields) => {
            pair(out, DICT, fields.len() as u64)?;
            out.enter()?;
            for (name, part) in fields {
                out.text(name)?;
                write_batch(py, part, out)?;
            }
            out.leave();
            Ok(())
        }
    }
}

#[cold]
fn changed() -> Error {
    Error::data("an array has another shape or dtype than when it was put into its batch")
        .help("return a new array from the function, and leave it as it is")
}

fn write_all(tag: u64, values: &[Bound<'_, PyAny>], holders: Holders, out: &mut Out<'_>) -> Result<(), Stop> {
    pair(out, tag, values.len() as u64)?;
    out.enter()?;
    values.iter().try_for_each(|value| write_object(value, holders, out))?;
    out.leave();
    Ok(())
}

/// The pickle of a leaf, and beside it the memory of arrays inside.
fn write_pickled(value: &Bound<'_, PyAny>, out: &mut Out<'_>) -> Result<(), Stop> {
    let dumps = || value.py().import("gristmill._remote")?.call_method1("dumps", (value,))?.extract();
    let (pickle, parts): (Bound<'_, PyBytes>, Vec<Bound<'_, PyAny>>) = dumps().map_err(|e| unpicklable(value, e))?;
    out.word(PICKLED)?;
    write_bytes(out, pickle.as_bytes())?;
    out.word(parts.len() as u64)?;
    for part in &parts {
        buffer::with_bytes(part, |bytes| write_bytes(out, bytes)).map_err(error::caught)??;
    }
    Ok(())
}

#[cold]
fn unpicklable(value: &Bound<'_, PyAny>, exception: PyErr) -> Error {
    let kind = value.get_type().fully_qualified_name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    Error::data(format!("an element holds a {kind}, which cannot leave the worker: {exception}"))
        .help("return arrays, numbers, text, and dicts, lists, tuples and dataclasses of these, or use threads")
}
