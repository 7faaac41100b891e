//! A TFRecord file, read in order, for readers written in Python.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::buffer;
use super::error::OrRaise;
use super::interpreter::detached;
use crate::element::Buffer;
use crate::error::Result;
use crate::source::{Access, TfRecordReader};
use crate::sync::Locked;

/// Reads the records of a TFRecord file, compressed or not, and seeks a record by its byte.
#[pyclass(name = "TfRecordReader", module = "gristmill._gristmill", frozen)]
pub(crate) struct PyTfRecordReader {
    path: PathBuf,
    reader: Mutex<TfRecordReader>,
}

impl PyTfRecordReader {
    fn reader(&self) -> MutexGuard<'_, TfRecordReader> {
        self.reader.locked()
    }

    fn next(&self) -> Result<Option<Buffer>> {
        self.reader().next().map_err(|e| e.path(&self.path))
    }
}

#[pymethods]
impl PyTfRecordReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let reader = detached(py, || TfRecordReader::open_path(&path, Access::Sequential)).or_raise(py)?;
        Ok(Self { path, reader: Mutex::new(reader) })
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let record = detached(py, || self.next()).or_raise(py)?;
        record.map(|record| buffer::to_bytes(py, record.as_bytes())).transpose()
    }

    /// Moves to a record.
    ///
    /// Args:
    ///     byte (int): The offset of the record in the decompressed data.
    ///
    /// Raises:
    ///     ValueError: No record begins at the offset.
    fn seek(&self, py: Python<'_>, byte: u64) -> PyResult<()> {
        detached(py, || self.reader().seek(byte).map_err(|e| e.path(&self.path))).or_raise(py)
    }

    /// Returns the offset of the next record in the decompressed data.
    fn tell(&self) -> u64 {
        self.reader().byte
    }
}
