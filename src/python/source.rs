//! Sources written in Python, and the choice between datasets.

use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::callable::Callable;
use super::error;
use super::interpreter::attach;
use super::item::Item;
use super::owned;
use crate::dataset::map::{Many, RandomAccess, SelectionMap, SourceFacts};
use crate::error::{Error, Result};

/// Anything with `__len__` and `__getitem__`, and optionally `__getitems__`, which is given a list of indices.
pub(crate) struct PythonSource {
    object: Callable,
    len: u64,
    kind: String,
    /// Whether it has `__getitems__`.
    together: bool,
}

impl PythonSource {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = object.get_type().fully_qualified_name()?.to_string();
        if !object.hasattr("__getitem__")? {
            return Err(PyTypeError::new_err(format!(
                "a source needs `__len__` and `__getitem__`, and {kind} lacks them"
            )));
        }
        let together = object.hasattr("__getitems__")?;
        Ok(Self { len: object.len()? as u64, object: Callable::of(object), kind, together })
    }

    /// The object that is read.
    pub(crate) fn object(&self) -> Callable {
        self.object.clone()
    }

    #[cold]
    fn miscounted(&self, asked: usize, given: usize) -> Error {
        Error::data(format!("`__getitems__` of {} gave {given} records for {asked} indices", self.kind))
    }
}

impl RandomAccess for PythonSource {
    type Record = Item;

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, index: u64) -> Result<Item> {
        attach(|py| self.object.object().bind(py).get_item(index).and_then(Item::of_result)).map_err(error::caught)
    }

    /// Reads by `__getitems__`, if the source has it. After a failure, each record is read individually, so that the
    /// error belongs to one record.
    fn read_many(&self, indices: &[u64]) -> Many<Item> {
        attach(|py| {
            let object = self.object.object().bind(py);
            let records = || owned::owned_all(object.call_method1("__getitems__", (indices,))?);
            match self.together.then(records) {
                Some(Ok(records)) if records.len() == indices.len() => records.into(),
                Some(Ok(records)) => Many::one_by_one(indices, |_| Err(self.miscounted(indices.len(), records.len()))),
                // An exception that ends the program is raised at once.
                Some(Err(ended)) if !ended.is_instance_of::<PyException>(py) => {
                    Many::one_by_one(indices, |_| Err(error::caught(ended.clone_ref(py))))
                }
                _ => Many::one_by_one(indices, |index| self.read(index).map(Some)),
            }
        })
    }

    fn facts(&self) -> SourceFacts {
        let identity = format!("{}, {} records", self.kind, self.len);
        SourceFacts { reads_together: self.together, ..SourceFacts::new("source", identity) }
    }
}

debug_as!(PythonSource, |self, f| write!(f, "PythonSource({}, {} records)", self.kind, self.len));

/// The order of `select_from_datasets`, which is read completely when the dataset is made, so that no error can
/// follow later.
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
