//! Sources written in Python, and the choice between datasets.

use std::fmt;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::error;
use super::item::Item;
use crate::dataset::map::{RandomAccess, SelectionMap};
use crate::error::Result;

/// Anything with `__len__` and `__getitem__`.
pub(crate) struct PythonSource {
    object: Py<PyAny>,
    len: u64,
    kind: String,
}

impl PythonSource {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = object.get_type().fully_qualified_name()?.to_string();
        if !object.hasattr("__getitem__")? {
            return Err(PyTypeError::new_err(format!("a source has `__len__` and `__getitem__`, and {kind} has not")));
        }
        Ok(Self { len: object.len()? as u64, object: object.clone().unbind(), kind })
    }
}

impl RandomAccess for PythonSource {
    type Record = Item;

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, index: u64) -> Result<Item> {
        Python::attach(|py| self.object.bind(py).get_item(index).map(Item::from_python)).map_err(error::caught)
    }

    fn identity(&self) -> String {
        format!("{}, {} records", self.kind, self.len)
    }
}

impl fmt::Debug for PythonSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PythonSource({}, {} records)", self.kind, self.len)
    }
}

/// The order of `select_from_datasets`, asked once for every element when the dataset is made: what it answers for must be a
/// pure function anyway, and so no error can arise later.
#[derive(Debug)]
pub(crate) struct Selection(Vec<(usize, u64)>);

impl Selection {
    pub(crate) fn new(map: &Bound<'_, PyAny>) -> PyResult<Self> {
        let len = map.len()?;
        if len == 0 {
            return Err(PyValueError::new_err("the selection map has 0 elements, and needs 1 or more"));
        }
        (0..len).map(|index| map.get_item(index)?.extract()).collect::<PyResult<_>>().map(Self)
    }
}

impl SelectionMap for Selection {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn at(&self, index: u64) -> (usize, u64) {
        self.0[(index % self.len()) as usize]
    }

    fn identity(&self) -> String {
        let mut bytes = Vec::with_capacity(16 * self.0.len());
        for &(dataset, index) in &self.0 {
            bytes.extend_from_slice(&(dataset as u64).to_le_bytes());
            bytes.extend_from_slice(&index.to_le_bytes());
        }
        format!("order={:016x}", xxhash_rust::xxh3::xxh3_64(&bytes))
    }
}
