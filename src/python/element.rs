//! Elements as dicts of arrays, text and bytes, and back.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::buffer::Access;
use super::{buffer, error};
use crate::element::{Array, Buffer, Element, Value};
use crate::error::{Error, Result};
use crate::spec::RECORD;

/// Deepest nesting of what Python hands in.
const MAX_DEPTH: usize = 64;

/// A dict in the order of the fields.
pub(crate) fn to_dict(py: Python<'_>, element: Element, access: Access) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in element.into_fields() {
        dict.set_item(name.as_str(), to_object(py, value, access)?)?;
    }
    Ok(dict)
}

fn to_object(py: Python<'_>, value: Value, access: Access) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Array(array) => buffer::to_numpy(py, array, access),
        Value::Str(text) => Ok(buffer::to_str(py, &text)?.into_any()),
        Value::Bytes(bytes) => Ok(buffer::to_bytes(py, bytes.as_bytes())?.into_any()),
        Value::List(items) => {
            let items = items.into_iter().map(|item| to_object(py, item, access)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, items)?.into_any())
        }
        Value::Tree(tree) => Ok(to_dict(py, tree, access)?.into_any()),
    }
}

/// A record of bytes under the name that sources give it.
pub(crate) fn of_record(bytes: Buffer) -> Element {
    Element::with_capacity(1).with(RECORD, Value::Bytes(bytes))
}

/// Policy for the memory of arrays that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Copies,
    /// Read-only arrays are kept without a copy.
    Shares,
}

/// The element that a dict is, or a record of bytes.
pub(crate) fn from_object(object: &Bound<'_, PyAny>) -> Result<Element> {
    taken(object, Taking::Copies)
}

/// Like [`from_object`], but keeps read-only arrays without a copy.
pub(crate) fn shared_from_object(object: &Bound<'_, PyAny>) -> Result<Element> {
    taken(object, Taking::Shares)
}

fn taken(object: &Bound<'_, PyAny>, taking: Taking) -> Result<Element> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(of_record(Buffer::copy_from(bytes.as_bytes())));
    }
    match object.cast::<PyDict>() {
        Ok(dict) => from_dict(dict, taking, 0),
        Err(_) => Err(Error::data(format!("native stages take dicts of arrays and text, got {}", type_name(object)))
            .help("return a dict from the function before them: {\"x\": x}")),
    }
}

fn from_dict(dict: &Bound<'_, PyDict>, taking: Taking, depth: usize) -> Result<Element> {
    if depth > MAX_DEPTH {
        return Err(Error::data(format!("a dict nested deeper than {MAX_DEPTH}")));
    }
    let mut element = Element::with_capacity(dict.len());
    for (key, value) in dict.iter() {
        let name = key
            .cast::<PyString>()
            .map_err(|_| Error::data(format!("the keys of an element are text, got {}", type_name(&key))))?;
        let name = name.to_cow().map_err(error::caught)?;
        let value = from_value(&value, taking, depth + 1).map_err(|e| in_field(e, &name))?;
        element.insert(&name, value);
    }
    Ok(element)
}

/// Adds the field to an error about a value; a Python exception is kept.
fn in_field(error: Error, name: &str) -> Error {
    if std::error::Error::source(&error).is_some() { error } else { error.and(&format!(", in field {name:?}")) }
}

fn from_value(value: &Bound<'_, PyAny>, taking: Taking, depth: usize) -> Result<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    buffer::ready(value.py()).map_err(error::caught)?;
    if let Ok(array) = value.cast() {
        return Ok(array_of(array, taking)?.into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::from(&*text.to_cow().map_err(error::caught)?));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Array::bool(truth.is_true()).into());
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>();
        return Ok(Array::scalar(number.map_err(|_| Error::data(format!("the number {value} exceeds int64")))?).into());
    }
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(Array::scalar(value.extract::<f64>().map_err(error::caught)?).into());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Value::Bytes(Buffer::copy_from(bytes.as_bytes())));
    }
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(from_dict(dict, taking, depth)?.into());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return from_list(value, taking, depth);
    }
    from_array_like(value, taking)
}

/// Whole numbers make an `int64` array, numbers a `float64` array, anything else a list: as in a pipeline file.
fn from_list(list: &Bound<'_, PyAny>, taking: Taking, depth: usize) -> Result<Value> {
    if depth > MAX_DEPTH {
        return Err(Error::data(format!("a list nested deeper than {MAX_DEPTH}")));
    }
    let items = list.try_iter().and_then(|items| items.collect::<PyResult<Vec<_>>>()).map_err(error::caught)?;
    let whole = |item: &Bound<'_, PyAny>| item.is_exact_instance_of::<PyInt>();
    if !items.is_empty() && items.iter().all(whole) {
        let numbers = items.iter().map(|item| item.extract::<i64>()).collect::<PyResult<Vec<_>>>();
        return Ok(Array::from_vec(numbers.map_err(|_| Error::data("a number of the list exceeds int64"))?).into());
    }
    if !items.is_empty() && items.iter().all(|item| whole(item) || item.is_exact_instance_of::<PyFloat>()) {
        let numbers = items.iter().map(|item| item.extract::<f64>()).collect::<PyResult<Vec<_>>>();
        return Ok(Array::from_vec(numbers.map_err(error::caught)?).into());
    }
    Ok(Value::List(items.iter().map(|item| from_value(item, taking, depth + 1)).collect::<Result<_>>()?))
}

/// Makes a value of an object that NumPy converts to an array: a scalar, or an array of another library.
fn from_array_like(value: &Bound<'_, PyAny>, taking: Taking) -> Result<Value> {
    let has = |method: &str| value.hasattr(method).map_err(error::caught);
    let make = if has("__array__")? {
        "asarray"
    } else if has("__dlpack__")? {
        "from_dlpack"
    } else {
        return Err(Error::data(format!("native stages do not support {}", type_name(value)))
            .help("they take NumPy arrays, numbers, str, bytes, None, and dicts, lists and tuples of these"));
    };
    let array = buffer::numpy_module(value.py()).and_then(|numpy| numpy.call_method1(make, (value,)));
    let array = array.and_then(|array| Ok(array.cast_into()?)).map_err(error::caught)?;
    Ok(array_of(&array, taking)?.into())
}

fn array_of(array: &Bound<'_, PyUntypedArray>, taking: Taking) -> Result<Array> {
    match taking {
        Taking::Copies => buffer::from_numpy(array),
        Taking::Shares => buffer::share_numpy(array),
    }
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().fully_qualified_name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}
