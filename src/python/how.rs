//! The way to run a pipeline, as it is asked for in Python.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::guard::{GivenGuard, GuardTimeout};
use super::item::Item;
use super::part::Given;
use super::workers::Workers;
use crate::dataset::BoxIter;
use crate::keys::KeyFolder;
use crate::{Deal, Executor, Load, LoaderBuilder, Part, Result};

/// Threads that evaluate the elementwise part: how many, or `"auto"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads(pub(super) Executor);

impl Threads {
    /// None: the consumer evaluates.
    pub(crate) const NONE: Self = Self(Executor::Inline);
}

impl<'a, 'py> FromPyObject<'a, 'py> for Threads {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.cast::<PyString>() {
            if text.to_str()? == "auto" {
                return Ok(Self(Executor::Auto));
            }
            return Err(PyValueError::new_err(format!(
                "threads is {}, and must be a number or \"auto\"",
                text.repr()?
            )));
        }
        Ok(match given.extract::<usize>()? {
            0 => Self::NONE,
            n => Self(Executor::Threads(n)),
        })
    }
}

/// Way to run a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) threads: Threads,
    pub(crate) buffer: usize,
    /// Whether the arrays that are handed out may be written to.
    pub(crate) writable: bool,
    /// Whether `mp_prefetch` has processes started.
    pub(crate) workers: bool,
}

impl How {
    /// The way of a plain loop.
    pub(crate) const DEFAULT: Self = Self { threads: Threads::NONE, buffer: 2, writable: false, workers: true };
}

/// The rows of every batch that are delivered, where several hosts read one pipeline, and how those are compared.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) part: Option<Given>,
    pub(crate) deal: Deal,
    pub(crate) guard: GivenGuard,
    pub(crate) timeout: Duration,
    /// The folder of key files.
    pub(crate) keys: Option<PathBuf>,
}

impl Default for Hosts {
    fn default() -> Self {
        Self { part: None, deal: Deal::Even, guard: GivenGuard::Auto, timeout: GuardTimeout::DEFAULT.0, keys: None }
    }
}

/// Makes what starts a pass over the rows of `part`, as `deal` says, or of all.
pub(super) fn builder(
    dataset: &BoxIter<Item>,
    how: How,
    workers: Option<&Workers>,
    part: Option<Part>,
    deal: Deal,
    keys: Option<&Path>,
) -> Result<LoaderBuilder<BoxIter<Item>>> {
    let mut builder = dataset.clone().loader().executor(how.threads.0).buffer(how.buffer).deal(deal);
    if let Some(folder) = keys {
        builder = builder.keys(KeyFolder::new(folder).needed());
    }
    if let Some(workers) = workers {
        builder = workers.run(builder, how.buffer)?;
    }
    Ok(match part {
        Some(part) => builder.part(part),
        None => builder,
    })
}
