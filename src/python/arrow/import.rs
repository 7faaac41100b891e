//! Tables of Arrow as sources: rows that view the table's memory.
#![expect(unsafe_code, reason = "Arrow's C interface takes pointers")]

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow_array::ffi::from_ffi;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use super::refused;
use crate::dataset::MapDatasetExt;
use crate::dataset::map::{RandomAccess, Source, SourceFacts};
use crate::element::{Name, Run};
use crate::error::{Error, Result};
use crate::python::arguments;
use crate::python::error::OrRaise;
use crate::python::interpreter::detached;
use crate::python::pipeline::{Pipeline, over};
use crate::source::arrow::own;
use crate::source::arrow::spans::{Place, Span, Spans, rows_of_spans};
use crate::source::arrow::value::{Memory, is_supported};
use crate::source::contained::contained;
use crate::source::firsts::Firsts;
use crate::source::units::{Held, Key};
use crate::spec::chain::{Chain, Context};

/// A table, and its selected rows and columns.
pub(crate) struct Given<'py> {
    table: Bound<'py, PyAny>,
    columns: Option<Bound<'py, PyAny>>,
}

/// Returns the table among the arguments, if they name no files.
pub(crate) fn table<'py>(
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Given<'py>>> {
    let named = |name| kwargs.map_or(Ok(None), |kwargs| kwargs.get_item(name));
    let table = match args.len() {
        0 => named("table")?,
        1 => Some(args.get_item(0)?),
        _ => None,
    };
    let Some(table) = table else { return Ok(None) };
    if names_files(&table)? {
        return Ok(None);
    }
    for name in kwargs.iter().flat_map(|kwargs| kwargs.keys()) {
        let name: String = name.extract()?;
        if name != "columns" && !(name == "table" && args.is_empty()) {
            return Err(PyTypeError::new_err(format!("arrow() of a table takes `columns`, and no `{name}`")));
        }
    }
    Ok(Some(Given { table, columns: named("columns")?.filter(|columns| !columns.is_none()) }))
}

impl Given<'_> {
    /// Its rows, in the order that it gives them.
    pub(crate) fn maps(&self) -> PyResult<Pipeline> {
        let py = self.table.py();
        let (table, indices) = taken(&self.table)?;
        let rows = Source::new(Rows::of(&table)?).boxed();
        let mut context = Context::new(PathBuf::new());
        context.peek(&rows);
        let mut maps = Pipeline::Elements(Chain::Map(rows), context);
        if let Some(indices) = indices {
            maps = over!(&maps, ds => ds.select_indices(indices));
        }
        let Some(columns) = &self.columns else { return Ok(maps) };
        let columns = arguments::tree("select_columns", &PyTuple::new(py, [columns])?, None)?;
        detached(py, || maps.native("select_columns", columns)).or_raise(py)
    }
}

/// Returns the exporting object, and the indices of its rows if it selects or reorders rows.
fn taken<'py>(given: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Option<Vec<u64>>)> {
    if given.hasattr("__arrow_c_stream__")? || given.hasattr("__arrow_c_array__")? {
        return Ok((given.clone(), None));
    }
    let taken = given.py().import("gristmill._tables")?.call_method1("taken", (given,))?;
    let (table, indices): (Bound<'_, PyAny>, Option<PyReadonlyArray1<'_, u64>>) = taken.extract()?;
    Ok((table, indices.map(|indices| indices.as_array().to_vec())))
}

/// Whether it is a path, or a list of paths.
fn names_files(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_path = |given: &Bound<'_, PyAny>| Ok(given.is_instance_of::<PyString>() || given.hasattr("__fspath__")?);
    if !given.is_instance_of::<PyList>() && !given.is_instance_of::<PyTuple>() {
        return is_path(given);
    }
    given.try_iter()?.try_fold(true, |all, item| Ok(all && is_path(&item?)?))
}

/// A batch of a table. Its values are checked before the first is read: a table may be larger than memory.
struct Batch {
    batch: RecordBatch,
    /// The columns that are read, by their places.
    places: Arc<[usize]>,
    span: OnceLock<std::result::Result<Arc<Span>, String>>,
}

impl Batch {
    /// Its rows, once its values are known to lie within its buffers.
    fn checked(&self) -> Result<Arc<Span>> {
        let check = || {
            let checked = contained(|| own::batch(&self.batch).map_err(|error| Error::data(error.to_string())));
            let batch = checked.map_err(|error| error.message().to_owned())?;
            // Views take memory only for their offsets.
            Ok(Arc::new(Span::at(&batch, &self.places, Memory::Viewed, 0)))
        };
        self.span.get_or_init(check).clone().map_err(damaged)
    }
}

/// The error of a table whose buffers contradict each other.
fn damaged(why: impl fmt::Display) -> Error {
    Error::data(format!("the Arrow table is damaged: {why}"))
        .help("`table.validate(full=True)` of pyarrow finds the column; the file that the table was read from is damaged, too")
}

/// The rows of a table.
struct Rows {
    batches: Vec<Batch>,
    /// Over the spans.
    firsts: Firsts,
    names: Vec<Name>,
    schema: SchemaRef,
    bytes: u64,
}

impl Rows {
    /// Takes the batches of anything that exports itself through Arrow's C interface.
    fn of(table: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = table.py();
        // Arrow's interface has no sizes of buffers, so only the producer can compare the last offset with the buffer that it is into.
        let is_pyarrow = table.get_type().module()?.to_str()?.split('.').next() == Some("pyarrow");
        let read = if is_pyarrow && table.hasattr("read_all")? { Some(table.call_method0("read_all")?) } else { None };
        let table = read.as_ref().unwrap_or(table);
        if is_pyarrow && table.hasattr("validate")? {
            table.call_method0("validate").map_err(|error| damaged(error.value(py))).or_raise(py)?;
        }
        let import = || if table.hasattr("__arrow_c_stream__")? { stream(table) } else { one(table) };
        // arrow-rs panics if an array does not fit its schema.
        let imported = contained(|| Ok(import()));
        let (schema, batches) = imported.map_err(|_| damaged("its arrays do not fit its schema")).or_raise(py)??;
        Self::new(schema, batches).or_raise(table.py())
    }

    fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        for field in schema.fields() {
            if !is_supported(field.data_type()) {
                return Err(Error::unsupported(format!("column {:?} is of type {}", field.name(), field.data_type())));
            }
        }
        let (mut names, mut places) = (Vec::<Name>::new(), Vec::new());
        for (at, field) in schema.fields().iter().enumerate() {
            // If two columns have one name, the last is read, in the place of the first.
            if let Some(first) = names.iter().position(|name| name == field.name()) {
                places[first] = at
            } else {
                names.push(Name::new(field.name()));
                places.push(at);
            }
        }
        let firsts = Firsts::of(batches.iter().map(|batch| batch.num_rows() as u64))?;
        let bytes = batches.iter().map(|batch| batch.get_array_memory_size() as u64).sum();
        let places: Arc<[usize]> = places.into();
        let batch = |batch| Batch { batch, places: places.clone(), span: OnceLock::new() };
        Ok(Self { batches: batches.into_iter().map(batch).collect(), firsts, names, schema, bytes })
    }
}

fn stream(table: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule with this name holds a stream. The stream is moved out, and the rest is marked as released.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(refused)?;
    let schema = reader.schema();
    // The stream may call a Python iterator.
    let batches =
        detached(table.py(), || reader.collect::<std::result::Result<Vec<_>, ArrowError>>()).map_err(refused)?;
    Ok((schema, batches))
}

fn one(table: &Bound<'_, PyAny>) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        table.call_method0("__arrow_c_array__")?.extract()?;
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule with this name holds a schema. The schema is moved out, and the rest is marked as released.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema.as_ptr()) };
    // SAFETY: a capsule with this name holds an array. The array is moved out, and the rest is marked as released.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    // SAFETY: array and schema have one exporter, which guarantees that their pointers are valid.
    let data = unsafe { from_ffi(array, &schema) }.map_err(refused)?;
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyTypeError::new_err(format!("an array of {} is no record batch", data.data_type())));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    Ok((batch.schema(), vec![batch]))
}

impl Spans for Rows {
    fn names(&self) -> &[Name] {
        &self.names
    }

    fn find(&self, row: u64) -> Result<Place> {
        let (at, row) = self.firsts.find(row)?;
        let row = row as usize;
        Ok(Place { key: (at, 0), row, left: self.batches[at].batch.num_rows() - row })
    }

    fn span(&self, (at, _): Key, _: &[Run]) -> Result<Held<Span>> {
        self.batches[at].checked().map(Held::whole)
    }

    fn note(&self, _: Key, _: &mut dyn Iterator<Item = usize>) {}

    fn path(&self, _: Key) -> Option<&Path> {
        None
    }
}

impl RandomAccess for Rows {
    rows_of_spans!();

    fn facts(&self) -> SourceFacts {
        let column = |field: &Arc<arrow_schema::Field>| format!("{} {}", field.name(), field.data_type());
        let columns: Vec<_> = self.schema.fields().iter().map(column).collect();
        let identity = format!("{} rows of {}", self.len(), columns.join(", "));
        // The table's memory is Arrow's, and reads run no Python code.
        let (is_native, has_columns, memory_bytes) = (true, true, Some(self.bytes));
        SourceFacts { is_native, has_columns, memory_bytes, ..SourceFacts::new("arrow", identity) }
    }
}

debug_as!(Rows, |self, f| write!(f, "Rows({} in {} batches)", self.firsts.len, self.batches.len()));
