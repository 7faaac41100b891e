//! Tables of Arrow as sources: rows that view the table's memory.
#![expect(unsafe_code, reason = "Arrow's C interface takes pointers")]

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader, StructArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use super::refused;
use crate::dataset::map::RandomAccess;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::python::error::OrRaise;
use crate::python::interpreter::detached;
use crate::source::arrow::value::{Memory, is_supported, value};

/// The table among arguments that are not those of files.
pub(crate) fn table<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let named = kwargs.map_or(Ok(None), |kwargs| kwargs.get_item("table"))?;
    if args.len() != 1 || kwargs.is_some_and(|kwargs| !kwargs.is_empty()) {
        return Ok(named.filter(|_| args.is_empty()));
    }
    let given = args.get_item(0)?;
    Ok(if names_files(&given)? { None } else { Some(given) })
}

/// Whether it is a path, or a list of paths.
fn names_files(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_path = |given: &Bound<'_, PyAny>| Ok(given.is_instance_of::<PyString>() || given.hasattr("__fspath__")?);
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        return is_path(given);
    }
    given.try_iter()?.try_fold(true, |all, item| Ok(all && is_path(&item?)?))
}

/// The rows of a table.
pub(crate) struct Rows {
    batches: Vec<RecordBatch>,
    /// Rows up to the end of each batch.
    ends: Vec<u64>,
    schema: SchemaRef,
}

impl Rows {
    /// Those of anything that exports itself through Arrow's C interface.
    pub(crate) fn of(table: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (schema, batches) = if table.hasattr("__arrow_c_stream__")? {
            stream(table)?
        } else if table.hasattr("__arrow_c_array__")? {
            one(table)?
        } else {
            let kind = table.get_type().fully_qualified_name()?;
            let text = format!("needs a table with `__arrow_c_stream__` or `__arrow_c_array__`, or paths, got {kind}");
            return Err(PyTypeError::new_err(text));
        };
        Self::new(schema, batches).or_raise(table.py())
    }

    fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        for field in schema.fields() {
            if !is_supported(field.data_type()) {
                return Err(Error::unsupported(format!("column {:?} is of type {}", field.name(), field.data_type())));
            }
        }
        let ends = batches.iter().scan(0, |end, batch| {
            *end += batch.num_rows() as u64;
            Some(*end)
        });
        Ok(Self { ends: ends.collect(), batches, schema })
    }
}

fn stream(table: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of that name holds a stream; it is moved out, and what is left says that it was released.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(refused)?;
    let schema = reader.schema();
    // What is read may be a Python iterator on another side.
    let batches =
        detached(table.py(), || reader.collect::<std::result::Result<Vec<_>, ArrowError>>()).map_err(refused)?;
    Ok((schema, batches))
}

fn one(table: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        table.call_method0("__arrow_c_array__")?.extract()?;
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule of that name holds a schema; it is moved out, and what is left says that it was released.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema.as_ptr()) };
    // SAFETY: the same of an array.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    // SAFETY: the two belong together, and whoever exports them answers for what they point to.
    let data = unsafe { from_ffi(array, &schema) }.map_err(refused)?;
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyTypeError::new_err(format!("an array of {} is no record batch", data.data_type())));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    Ok((batch.schema(), vec![batch]))
}

impl RandomAccess for Rows {
    type Record = Element;

    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn read(&self, index: u64) -> Result<Element> {
        let at = self.ends.partition_point(|&end| end <= index);
        let batch =
            self.batches.get(at).ok_or_else(|| Error::data(format!("no row {index}: there are {}", self.len())))?;
        let row = (index - if at > 0 { self.ends[at - 1] } else { 0 }) as usize;
        let mut element = Element::with_capacity(batch.num_columns());
        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
            element.insert(field.name(), value(field, column, row, Memory::Viewed)?);
        }
        Ok(element)
    }

    fn name(&self) -> &'static str {
        "arrow"
    }

    fn identity(&self) -> String {
        let column = |field: &Arc<arrow::datatypes::Field>| format!("{} {}", field.name(), field.data_type());
        let columns: Vec<_> = self.schema.fields().iter().map(column).collect();
        format!("{} rows of {}", self.len(), columns.join(", "))
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn memory_bytes(&self) -> Option<u64> {
        Some(self.batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum())
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rows({} in {} batches)", self.len(), self.batches.len())
    }
}
