//! Policy for elements that fail after rows were planned of them, as Python says it.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::error::OrRaise;
use crate::exec::FailedElements;

/// `on_failed_element="error"` or `"pad"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnFailed(bool);

impl OnFailed {
    pub(crate) const ERROR: Self = Self(false);

    /// The policy with this limit.
    ///
    /// # Errors
    /// `ConfigError` for a limit where nothing becomes padding.
    pub(crate) fn up_to(self, py: Python<'_>, limit: Option<u64>) -> PyResult<FailedElements> {
        FailedElements::chosen(self.0, limit).or_raise(py)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for OnFailed {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.cast::<PyString>().ok().as_ref().map(|text| text.to_str()).transpose()? {
            Some("error") => Ok(Self(false)),
            Some("pad") => Ok(Self(true)),
            _ => Err(PyTypeError::new_err("on_failed_element is \"error\" or \"pad\"")),
        }
    }
}
