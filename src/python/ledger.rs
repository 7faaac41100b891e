//! `which` and `audit`: searches in run logs by pipelines of Python.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;

use super::error::OrRaise;
use super::interpreter::detached;
use super::item::Item;
use super::{json, keys};
use crate::dataset::BoxIter;
use crate::error::Result;
use crate::keys::{KeyFolder, KeySource};
use crate::ledger::{self, RunLog};

/// A run log, and the keys of its pipeline.
pub(super) struct Logged {
    log: RunLog,
    keys: Option<Arc<dyn KeySource>>,
}

impl Logged {
    /// Opens the run log of `object`, and the key files in the folder `keys`.
    pub(super) fn open(object: &Bound<'_, PyAny>, log: PathBuf, keys: Option<PathBuf>) -> PyResult<Self> {
        let log = RunLog::open(log).or_raise(object.py())?;
        let Some(folder) = keys else { return Ok(Self { log, keys: None }) };
        let keys = KeyFolder::new(folder).functions(keys::functions(object)?).needed();
        Ok(Self { log, keys: Some(Arc::new(keys)) })
    }

    /// Returns the records of batch `step`.
    pub(super) fn which<'py>(self, py: Python<'py>, dataset: &BoxIter<Item>, step: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, || ledger::which(dataset, &self.log, step, self.keys))
    }

    /// Compares the run with its plan.
    pub(super) fn audit<'py>(self, py: Python<'py>, dataset: &BoxIter<Item>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, || ledger::audit(dataset, &self.log, self.keys))
    }
}

/// Calls `find` without the interpreter, and converts its result.
fn to_python<T: Serialize + Send>(
    py: Python<'_>,
    find: impl FnOnce() -> Result<T> + Send,
) -> PyResult<Bound<'_, PyAny>> {
    let found = detached(py, find).or_raise(py)?;
    let found = serde_json::to_value(found).map_err(|e| PyValueError::new_err(e.to_string()))?;
    json::to_python(py, &found)
}
