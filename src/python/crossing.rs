//! Items on their way from a worker: arrays, text and numbers as they are, anything else pickled leaf by leaf.

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::apart::{Apart, Sequence};
use super::item::Item;
use super::tree::Tree;
use super::{buffer, error};
use crate::element::{DType, Element};
use crate::error::{Error, Result};
use crate::workers::wire::{Cross, In, Out, Stop};

/// What follows, in the lowest byte of a word.
const NONE: u64 = 0;
const FALSE: u64 = 1;
const TRUE: u64 = 2;
const INT: u64 = 3;
const FLOAT: u64 = 4;
const STR: u64 = 5;
const BYTES: u64 = 6;
/// The dtype is in the second byte, the rank in the upper half.
const ARRAY: u64 = 7;
const LIST: u64 = 8;
const TUPLE: u64 = 9;
const DICT: u64 = 10;
const PICKLED: u64 = 11;
/// What is native, and stays so.
const ELEMENT: u64 = 12;
const ITEMS: u64 = 13;

/// Where arrays begin: what JAX and Arrow alias.
const ALIGN: usize = 64;

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
            Self::Tree(tree) => Python::attach(|py| {
                let object = (**tree).clone().into_python(py, buffer::Access::Read).map_err(error::caught)?;
                write_object(&object, out)
            }),
            Self::Python(object) => Python::attach(|py| write_object(object.bind(py), out)),
            Self::Apart(batch) => Python::attach(|py| write_batch(py, batch, out)),
        }
    }

    fn read(from: &mut In<'_>) -> Result<Self> {
        match from.word()? {
            ELEMENT => Element::read(from).map(Self::Element),
            ITEMS => many(from, Self::read).map(Self::Tuple),
            tag => Ok(match read_tree(tag, from)? {
                Tree::Int(number) => Self::Int(number),
                Tree::Float(number) => Self::Float(number),
                Tree::Array(array) => Self::Array(Box::new(array)),
                tree => Self::Tree(Box::new(tree)),
            }),
        }
    }
}

fn pair(out: &mut Out<'_>, tag: u64, word: u64) -> Result<(), Stop> {
    out.word(tag)?;
    out.word(word)
}

fn write_array(out: &mut Out<'_>, dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<(), Stop> {
    out.word(ARRAY | (dtype as u64) << 8 | (shape.len() as u64) << 32)?;
    shape.iter().try_for_each(|&dim| out.word(dim as u64))?;
    out.bytes(ALIGN, bytes)
}

fn write_bytes(out: &mut Out<'_>, bytes: &[u8]) -> Result<(), Stop> {
    out.word(bytes.len() as u64)?;
    out.bytes(ALIGN, bytes)
}

/// Only what is exactly of a known type: subclasses stay what they are, pickled.
fn write_object(value: &Bound<'_, PyAny>, out: &mut Out<'_>) -> Result<(), Stop> {
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
        return write_dict(dict, out);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return write_all(LIST, &list.iter().collect::<Vec<_>>(), out);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return write_all(TUPLE, &tuple.iter().collect::<Vec<_>>(), out);
    }
    match numpy_array(value).map_err(error::caught)? {
        Some(array) => {
            let written = buffer::view(&array, |dtype, shape, bytes| write_array(out, dtype, shape, bytes))
                .map_err(Stop::from)?;
            written.unwrap_or_else(|| write_pickled(value, out))
        }
        None => write_pickled(value, out),
    }
}

/// `value`, if NumPy is there and it is its array; or the array of one of NumPy's numbers.
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

fn write_dict(dict: &Bound<'_, PyDict>, out: &mut Out<'_>) -> Result<(), Stop> {
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
        write_object(value, out)?;
    }
    out.leave();
    Ok(())
}

/// A batch, each row of it copied once, to its place.
fn write_batch(py: Python<'_>, batch: &Apart, out: &mut Out<'_>) -> Result<(), Stop> {
    match batch {
        Apart::Whole(object) => write_object(object.bind(py), out),
        Apart::Rows(rows) => {
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

fn write_rows(out: &mut Out<'_>, dtype: DType, shape: &[usize], rows: &[&[u8]]) -> Result<(), Stop> {
    out.word(ARRAY | (dtype as u64) << 8 | (1 + shape.len() as u64) << 32)?;
    out.word(rows.len() as u64)?;
    shape.iter().try_for_each(|&dim| out.word(dim as u64))?;
    out.rows(ALIGN, rows.iter().copied())
}

#[cold]
fn changed() -> Error {
    Error::data("an array has another shape or dtype than when it was put into its batch")
        .help("return a new array from the function, and leave it as it is")
}

fn write_all(tag: u64, values: &[Bound<'_, PyAny>], out: &mut Out<'_>) -> Result<(), Stop> {
    pair(out, tag, values.len() as u64)?;
    out.enter()?;
    values.iter().try_for_each(|value| write_object(value, out))?;
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

fn read_tree(tag: u64, from: &mut In<'_>) -> Result<Tree> {
    Ok(match tag {
        NONE => Tree::None,
        FALSE => Tree::Bool(false),
        TRUE => Tree::Bool(true),
        INT => Tree::Int(from.word()? as i64),
        FLOAT => Tree::Float(f64::from_bits(from.word()?)),
        STR => Tree::Str(from.text(|text| Box::from(text))?),
        BYTES => Tree::Bytes(sized(from)?),
        LIST => Tree::List(many(from, read_any)?),
        TUPLE => Tree::Tuple(many(from, read_any)?),
        DICT => Tree::Dict(many(from, |from| Ok((from.text(|text| Box::from(text))?, read_any(from)?)))?),
        PICKLED => Tree::Pickled(sized(from)?, many(from, sized)?),
        tag if tag as u8 == ARRAY as u8 => read_array(tag, from)?,
        tag => return Err(from.damaged(format!("there is no item of kind {tag:#x}"))),
    })
}

fn read_any(from: &mut In<'_>) -> Result<Tree> {
    let tag = from.word()?;
    read_tree(tag, from)
}

fn sized(from: &mut In<'_>) -> Result<crate::element::Buffer> {
    let len = from.length()?;
    from.buffer(len)
}

fn many<T>(from: &mut In<'_>, one: impl Fn(&mut In<'_>) -> Result<T>) -> Result<Vec<T>> {
    let len = from.length()?;
    from.claim(len)?;
    from.enter()?;
    let mut all = Vec::with_capacity(len);
    for _ in 0..len {
        all.push(one(from)?);
    }
    from.leave();
    Ok(all)
}

fn read_array(tag: u64, from: &mut In<'_>) -> Result<Tree> {
    let rank = (tag >> 32) as usize;
    let Some(&dtype) = DType::ALL.get((tag >> 8) as usize & 0xff_ffff) else {
        return Err(from.damaged(format!("there is no dtype in {tag:#x}")));
    };
    from.claim(rank)?;
    let dims = (0..rank).map(|_| from.length()).collect::<Result<Vec<_>>>()?;
    let len = dims.iter().try_fold(dtype.size(), |n, &dim| n.checked_mul(dim));
    let len = len.ok_or_else(|| from.damaged(format!("an array {dtype}{dims:?} has no size")))?;
    let data = from.buffer(len)?;
    crate::element::Array::new(dtype, &dims, data).map(Tree::Array)
}
