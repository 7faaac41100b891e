//! Errors on their way between Python and the crate: an exception keeps its type and its traceback.

use pyo3::exceptions::PyMemoryError;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::described::literal;
use crate::cx::StageId;
use crate::dataset::{Record, Stage, record_in};
use crate::error::Error;
use crate::spec::RunOptions;

/// An exception of a Python function, which is raised again when the element is requested. `gristmill.BadRecord` and
/// other `DataError`s mark the element as bad, and are skipped with bad records.
#[cold]
pub(crate) fn caught(exception: PyErr) -> Error {
    if Python::attach(|py| is_bad_record(py, &exception)) { Error::bad(exception) } else { Error::user(exception) }
}

fn is_bad_record(py: Python<'_>, exception: &PyErr) -> bool {
    static DATA_ERROR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = || Ok::<_, PyErr>(py.import("gristmill._errors")?.getattr("DataError")?.unbind());
    // If the package cannot be imported, no error of its types exists.
    DATA_ERROR.get_or_try_init(py, class).is_ok_and(|class| exception.is_instance(py, class.bind(py)))
}

/// Returns the exception for `error`: the raised exception with a note about the place, or an exception of the
/// package.
#[cold]
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let Some(exception) = original(py, error) else { return of_package(py, error).unwrap_or_else(|failed| failed) };
    let exception = if exception.is_instance_of::<PyStopIteration>(py) {
        // Unchanged, the exception would end the iteration.
        let stopped = PyRuntimeError::new_err("a function of the pipeline raised StopIteration");
        stopped.set_cause(py, Some(exception));
        stopped
    } else {
        exception
    };
    let note = place(error).unwrap_or_default() + &said_since(error);
    if !note.is_empty() {
        annotate(py, &exception, note.trim_start_matches("; "));
    }
    exception
}

/// Returns the text that was added to the exception's message, such as a limit of bad records.
fn said_since(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    cause.and_then(|cause| error.message().strip_prefix(&cause).map(str::to_owned)).unwrap_or_default()
}

/// Adds a note under the traceback. Failures are ignored: only objects that are no exceptions lack `add_note`.
pub(crate) fn annotate(py: Python<'_>, exception: &PyErr, note: &str) {
    let _ = exception.value(py).call_method1("add_note", (format!("gristmill: {note}"),));
}

/// Returns the exception in `error`: the object, or an equal one if a worker process raised it.
fn original(py: Python<'_>, error: &Error) -> Option<PyErr> {
    std::iter::successors(std::error::Error::source(error), |&cause| cause.source()).find_map(|cause| {
        if let Some(packed) = cause.downcast_ref::<crate::error::Packed>() {
            return Some(unpack(py, packed).unwrap_or_else(|failed| failed));
        }
        cause.downcast_ref::<PyErr>().map(|exception| exception.clone_ref(py))
    })
}

fn unpack(py: Python<'_>, packed: &crate::error::Packed) -> PyResult<PyErr> {
    let bytes = super::buffer::to_bytes(py, packed.bytes())?;
    Ok(PyErr::from_value(py.import("gristmill._remote")?.call_method1("unpack", (bytes,))?))
}

/// Encodes an exception, in the worker that raised it.
pub(crate) fn pack(cause: &(dyn std::error::Error + 'static)) -> Option<Vec<u8>> {
    let exception = cause.downcast_ref::<PyErr>()?;
    Python::attach(|py| {
        let (value, place) = (exception.value(py), exception.traceback(py));
        let remote = py.import("gristmill._remote")?;
        let packed = remote.call_method1("pack", (value, place)).or_else(|failed| {
            // Encoding may need memory that does not exist, so this case is encoded in advance.
            let out_of_memory = exception.is_instance_of::<PyMemoryError>(py);
            if out_of_memory { remote.getattr("OUT_OF_MEMORY") } else { Err(failed) }
        })?;
        packed.extract::<Vec<u8>>()
    })
    .ok()
}

/// Returns the record of the failed element, if `stream` determines it.
#[cold]
pub(crate) fn record(error: &Error, stream: &dyn Stage) -> Option<Record> {
    let stage = error.stage_name()?.split(' ').next()?.parse().ok()?;
    record_in(stream, StageId(stage), error.element_index()?)
}

/// Adds the record to an exception. If no stage moves elements, the exception has it already.
#[cold]
pub(crate) fn annotate_record(py: Python<'_>, exception: &PyErr, error: &Error, record: Option<Record>) {
    let Some((record, index)) = record.zip(error.element_index()) else { return };
    if record.index != index {
        annotate(py, exception, &format!("element {index} is record {} of {}", record.index, record.source));
    }
}

fn place(error: &Error) -> Option<String> {
    match (error.stage_name(), error.element_index()) {
        (Some(stage), Some(index)) => Some(format!("stage {stage}, element {index}")),
        (Some(stage), None) => Some(format!("stage {stage}")),
        (None, Some(index)) => Some(format!("element {index}")),
        (None, None) => None,
    }
}

fn of_package(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let make = py.import("gristmill._errors")?.getattr("make")?;
    let help = error.help_text().map(spelled);
    let exception = make.call1((error.kind().as_str(), error.to_string(), help))?;
    Ok(PyErr::from_value(exception))
}

/// Spells options in backticks with the method that takes them: `` `on_poison: skip` `` as `` `mp_prefetch(on_poison="skip")` ``.
fn spelled(help: &str) -> String {
    RunOptions::spell(help, |option, value| {
        let name = option.name;
        let Some(value) = value else { return name.to_owned() };
        let method = if RunOptions::is_of_processes(name) { "mp_prefetch" } else { "loader" };
        format!("{method}({name}={})", literal(value))
    })
}

/// Conversion of results to those of Python methods.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for crate::error::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}
