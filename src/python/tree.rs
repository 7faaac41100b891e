//! Python objects from a worker, decoded on request.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::buffer::{self, Access};
use crate::element::{Array, DType, Tree};

impl Tree {
    /// Returns the Python object. Arrays are writable if `access` permits.
    pub(crate) fn into_python(self, py: Python<'_>, access: Access) -> PyResult<Bound<'_, PyAny>> {
        let one = |tree: Self| tree.into_python(py, access);
        let all = |trees: Vec<Self>| trees.into_iter().map(one).collect::<PyResult<Vec<_>>>();
        Ok(match self {
            Self::None => py.None().into_bound(py),
            Self::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
            Self::Int(number) => number.into_pyobject(py)?.into_any(),
            Self::Float(number) => number.into_pyobject(py)?.into_any(),
            Self::Str(text) => buffer::to_str(py, &text)?.into_any(),
            Self::Bytes(bytes) => buffer::to_bytes(py, bytes.as_bytes())?.into_any(),
            Self::Array(array) => buffer::to_numpy(py, array, access)?,
            Self::List(trees) => PyList::new(py, all(trees)?)?.into_any(),
            Self::Tuple(trees) => PyTuple::new(py, all(trees)?)?.into_any(),
            Self::Dict(fields) => {
                let dict = PyDict::new(py);
                for (name, tree) in fields {
                    dict.set_item(PyString::intern(py, &name), one(tree)?)?;
                }
                dict.into_any()
            }
            // It is a worker's word, which runs this user's functions: no data that is read comes to be a pickle.
            Self::Pickled(pickle, parts) => {
                let parts = parts.into_iter().map(|part| {
                    let array = Array::new(DType::U8, &[part.len()], part);
                    buffer::to_numpy(py, array.map_err(|e| super::error::raised(py, &e))?, access)
                });
                let parts = parts.collect::<PyResult<Vec<_>>>()?;
                let pickle = buffer::to_bytes(py, pickle.as_bytes())?;
                py.import("gristmill._remote")?.call_method1("loads", (pickle, parts))?
            }
        })
    }
}
