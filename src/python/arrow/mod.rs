//! Arrow's C interface, out and in: batches as record batches, tables as sources.

mod export;
mod import;

use std::sync::Mutex;

use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array as _, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyTuple};

pub(crate) use self::import::table;
use super::element;
use super::error::OrRaise;
use super::interpreter::detached;
use crate::sync::Locked;

/// A batch as Arrow's record batch. Its columns view the memory of gristmill's arrays.
///
/// Bools, text, bytes and lists of different lengths are copied, because Arrow's layout differs. Arrays of more
/// dimensions become lists of fixed size.
#[pyclass(name = "RecordBatch", module = "gristmill.arrow", frozen)]
#[derive(Debug)]
pub(crate) struct PyRecordBatch(RecordBatch);

fn record_batch(batch: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let py = batch.py();
    let element = element::from_object(batch).or_raise(py)?;
    detached(py, || export::record_batch(&element)).or_raise(py)
}

#[pymethods]
impl PyRecordBatch {
    #[new]
    fn new(batch: &Bound<'_, PyAny>) -> PyResult<Self> {
        record_batch(batch).map(Self)
    }

    /// Its columns and their types, as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.0.schema())
    }

    /// Returns schema and columns as capsules. A requested schema is ignored, as the protocol permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let (array, _) = to_ffi(&StructArray::from(self.0.clone()).to_data()).map_err(refused)?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        PyTuple::new(py, [schema(py, &self.0.schema())?, array])
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        let schema = self.0.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!("<gristmill.arrow.RecordBatch of {} rows: {}>", self.0.num_rows(), names.join(", "))
    }
}

fn schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(refused)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn refused(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Batches as Arrow's stream of record batches, which can be read once.
///
/// The first batch determines the columns. Batches are made when they are requested.
#[pyclass(name = "RecordBatchStream", module = "gristmill.arrow", frozen)]
#[derive(Debug)]
pub(crate) struct PyRecordBatchStream(Mutex<Option<Py<PyIterator>>>);

#[pymethods]
impl PyRecordBatchStream {
    #[new]
    fn new(batches: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Mutex::new(Some(batches.try_iter()?.unbind()))))
    }

    /// The stream, as a capsule.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.0.locked().take();
        let batches = batches.ok_or_else(|| PyRuntimeError::new_err("this stream was read already"))?;
        let first = batches.bind(py).clone().next().transpose()?.map(|batch| record_batch(&batch)).transpose()?;
        let first = first.ok_or_else(|| PyValueError::new_err("a stream without batches has no columns"))?;
        let reader = Reader { schema: first.schema(), first: Some(first), batches };
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

/// Reads a Python iterator on any thread.
struct Reader {
    schema: SchemaRef,
    first: Option<RecordBatch>,
    batches: Py<PyIterator>,
}

impl Reader {
    fn read(&self) -> PyResult<Option<RecordBatch>> {
        Python::attach(|py| {
            let batch = self.batches.bind(py).clone().next().transpose()?;
            batch.map(|batch| record_batch(&batch)).transpose()
        })
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        match self.read() {
            Ok(Some(batch)) if batch.schema() != self.schema => {
                let (was, is) = (&self.schema, batch.schema());
                Some(Err(ArrowError::SchemaError(format!("the first batch had {was:?}, and another has {is:?}"))))
            }
            Ok(batch) => batch.map(Ok),
            Err(raised) => Some(Err(ArrowError::ExternalError(Box::new(raised)))),
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
