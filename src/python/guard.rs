//! Guards of hosts: ways from host to host that Python has, and digests of batches that are its own.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::item::Item;
use super::part::{Given, PyPart};
use super::{element, error};
use crate::element::StreamHasher;
use crate::error::Result;
use crate::part::{DigestBatch, Exchange, Part, SharedFolder};

/// An exchange that is an object of Python with `begin`, `post` and `read`.
struct PyExchange(Py<PyAny>);

impl PyExchange {
    fn call<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Result<T> {
        Python::attach(|py| {
            // An iterator that is dropped while an exception is raised posts its last words.
            let raised = PyErr::take(py);
            let called = call(self.0.bind(py));
            if let Some(raised) = raised {
                raised.restore(py);
            }
            called
        })
        .map_err(error::caught)
    }
}

impl Exchange for PyExchange {
    fn begin(&mut self, part: &Part) -> Result<()> {
        self.call(|exchange| exchange.call_method1("begin", (PyPart::of(part.clone()),)).map(drop))
    }

    fn post(&mut self, round: u64, statement: &str) -> Result<()> {
        self.call(|exchange| exchange.call_method1("post", (round, statement)).map(drop))
    }

    fn read(&mut self, round: u64) -> Result<Vec<Option<String>>> {
        self.call(|exchange| exchange.call_method1("read", (round,))?.extract())
    }
}

/// A guard as it is given: `"auto"`, `None`, a folder, a folder and which host of how many this is, or an exchange.
#[derive(Debug, Default)]
pub(crate) enum GivenGuard {
    /// That which the part brings along.
    #[default]
    Auto,
    Off,
    Folder(PathBuf, Option<(usize, usize)>),
    Object(Py<PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for GivenGuard {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self::Off);
        }
        if given.cast::<PyString>().is_ok_and(|text| text.to_str().is_ok_and(|text| text == "auto")) {
            return Ok(Self::Auto);
        }
        if given.hasattr("post")? && given.hasattr("read")? {
            return Ok(Self::Object(given.to_owned().unbind()));
        }
        if let Ok((folder, index, count)) = given.extract::<(PathBuf, usize, usize)>() {
            return Ok(Self::Folder(folder, Some((index, count))));
        }
        given.extract::<PathBuf>().map(|folder| Self::Folder(folder, None)).map_err(|_| {
            PyTypeError::new_err(
                "a guard is \"auto\", None, a folder, (folder, host, hosts), or an object with begin, post and read",
            )
        })
    }
}

impl GivenGuard {
    pub(super) fn is_auto(&self) -> bool {
        matches!(self, Self::Auto)
    }

    /// The way to the other hosts, if there is one.
    pub(super) fn exchange(&self, py: Python<'_>, part: Option<&Given>) -> PyResult<Option<Box<dyn Exchange>>> {
        Ok(match self {
            Self::Auto => match part.and_then(|part| part.guard.as_ref()) {
                Some(make) => Some(Box::new(PyExchange(make.call0(py)?))),
                None => None,
            },
            Self::Off => None,
            Self::Folder(folder, None) => Some(Box::new(SharedFolder::new(folder))),
            Self::Folder(folder, Some((index, count))) => {
                Some(Box::new(SharedFolder::new(folder).host(*index, *count)))
            }
            Self::Object(object) => Some(Box::new(PyExchange(object.clone_ref(py)))),
        })
    }
}

impl DigestBatch for Item {
    fn digest_batch(&self, hasher: &mut StreamHasher) {
        match self {
            Self::Element(element) => element.digest_batch(hasher),
            Self::Array(array) => array.digest_batch(hasher),
            Self::Int(number) => hasher.bytes(&number.to_le_bytes()),
            Self::Float(number) => hasher.bytes(&number.to_le_bytes()),
            Self::Tuple(items) => {
                hasher.number(items.len() as u64);
                items.iter().for_each(|item| item.digest_batch(hasher));
            }
            Self::Tree(_) | Self::Python(_) | Self::Apart(_) => {
                // A batch with unsupported leaves is an error when its rows are taken.
                let _ = Python::attach(|py| digest_leaves(&self.clone().into_python(py)?, hasher));
            }
        }
    }
}

/// Hashes the leaves of a batch and their paths. Of leaves that are neither arrays nor text, the types are hashed.
fn digest_leaves(batch: &Bound<'_, PyAny>, hasher: &mut StreamHasher) -> PyResult<()> {
    let leaves = batch.py().import("gristmill._rows")?.call_method1("leaves", (batch,))?;
    for (path, leaf) in leaves.extract::<Vec<(String, Bound<'_, PyAny>)>>()? {
        let named = PyDict::new(batch.py());
        named.set_item(&path, &leaf)?;
        match element::shared_from_object(named.as_any()) {
            Ok(element) => element.digest_batch(hasher),
            Err(_) => hasher.bytes(leaf.get_type().name()?.to_string().as_bytes()),
        }
    }
    Ok(())
}
