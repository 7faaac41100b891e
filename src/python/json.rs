//! JSON as Python's own values, and the way back.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{IntoPyObject, intern};
use serde_json::Value as Json;

use crate::Checkpoint;

/// Makes what `json.loads` makes of the text of `json`, without the text.
pub(super) fn to_python<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    match json {
        Json::Null => Ok(py.None().into_bound(py)),
        Json::Bool(truth) => Ok(truth.into_pyobject(py)?.to_owned().into_any()),
        Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => Ok(number.into_pyobject(py)?.into_any()),
            (_, Some(number), _) => Ok(number.into_pyobject(py)?.into_any()),
            (.., number) => Ok(number.into_pyobject(py)?.into_any()),
        },
        Json::String(text) => Ok(text.into_pyobject(py)?.into_any()),
        Json::Array(values) => {
            let values: Vec<_> = values.iter().map(|value| to_python(py, value)).collect::<PyResult<_>>()?;
            Ok(PyList::new(py, values)?.into_any())
        }
        Json::Object(fields) => {
            let dict = PyDict::new(py);
            fields.iter().try_for_each(|(name, value)| dict.set_item(name, to_python(py, value)?))?;
            Ok(dict.into_any())
        }
    }
}

/// Makes the dict of a checkpoint, its fields in the order in which its JSON has them.
pub(super) fn of_checkpoint<'py>(py: Python<'py>, checkpoint: &Checkpoint) -> PyResult<Bound<'py, PyAny>> {
    let Checkpoint {
        gristmill_checkpoint,
        crate_version,
        fingerprint,
        pipeline,
        delivered,
        state,
        accepted_changes,
        edits,
        edited_mix,
    } = checkpoint;
    let dict = PyDict::new(py);
    dict.set_item(intern!(py, "gristmill_checkpoint"), gristmill_checkpoint)?;
    dict.set_item(intern!(py, "crate_version"), crate_version)?;
    dict.set_item(intern!(py, "fingerprint"), fingerprint)?;
    dict.set_item(intern!(py, "pipeline"), pipeline)?;
    dict.set_item(intern!(py, "delivered"), delivered)?;
    dict.set_item(intern!(py, "state"), to_python(py, state)?)?;
    if !accepted_changes.is_empty() {
        let changes = serde_json::to_value(accepted_changes).map_err(|e| PyValueError::new_err(e.to_string()))?;
        dict.set_item(intern!(py, "accepted_changes"), to_python(py, &changes)?)?;
    }
    if !edits.is_empty() {
        dict.set_item(intern!(py, "edits"), edits)?;
    }
    if let Some(progress) = edited_mix {
        let progress = serde_json::to_value(progress).map_err(|e| PyValueError::new_err(e.to_string()))?;
        dict.set_item(intern!(py, "edited_mix"), to_python(py, &progress)?)?;
    }
    Ok(dict.into_any())
}

/// Reads a value as `json.dumps` does, with equal errors.
///
/// # Errors
/// `ValueError` for an integer of more than 64 bits, which would be rounded.
pub(super) fn of_python(value: &Bound<'_, PyAny>) -> PyResult<Json> {
    let text = text_of(value)?;
    let json = serde_json::from_str(&text).map_err(|e| PyValueError::new_err(format!("not JSON: {e}")))?;
    if has_huge(&json) {
        let no_huge = PyDict::new(value.py());
        no_huge.set_item("parse_int", wrap_pyfunction!(fits, value.py())?)?;
        value.py().import("json")?.call_method("loads", (text,), Some(&no_huge))?;
    }
    Ok(json)
}

/// Whether there is a number in `json` that no integer of 64 bits is: a float, or a longer integer that was rounded to one.
fn has_huge(json: &Json) -> bool {
    match json {
        Json::Number(number) => number.as_f64().is_some_and(|float| number.is_f64() && float.abs() >= 2f64.powi(63)),
        Json::Array(values) => values.iter().any(has_huge),
        Json::Object(fields) => fields.values().any(has_huge),
        _ => false,
    }
}

/// Refuses the digits of an integer that takes more than 64 bits.
#[pyfunction]
fn fits(digits: &str) -> PyResult<()> {
    if digits.parse::<u64>().is_ok() || digits.parse::<i64>().is_ok() {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("JSON states hold integers of 64 bits, not {digits}: write it as text")))
}

/// Writes a value by `json.dumps`.
pub(super) fn text_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("json")?.call_method1("dumps", (value,))?.extract()
}
