//! The way to run a pipeline, as it is asked for in Python.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::guard::{GivenGuard, GuardTimeout};
use super::item::Item;
use super::part::Given;
use super::workers::Workers;
use crate::dataset::BoxIter;
use crate::exec::FailedElements;
use crate::keys::KeyFolder;
use crate::{Deal, Error, Executor, Load, LoaderBuilder, Part, Result};

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
    /// Whether states of other pipelines are accepted.
    pub(crate) accept_changes: bool,
    /// Whether `mp_prefetch` has processes started.
    pub(crate) workers: bool,
}

impl How {
    /// The way of a plain loop.
    pub(crate) const DEFAULT: Self =
        Self { threads: Threads::NONE, buffer: 2, writable: false, accept_changes: false, workers: true };
}

/// The rows of every batch that are delivered, where several hosts read one pipeline, and how those are compared.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) part: Option<Given>,
    pub(crate) deal: Deal,
    pub(crate) guard: GivenGuard,
    pub(crate) timeout: Duration,
    pub(crate) plan: Plan,
}

/// Everything that is asked for of a pass.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) how: How,
    pub(crate) hosts: Hosts,
    pub(crate) views: Views,
}

/// Views of a pass while it runs.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// The address of an endpoint of metrics.
    pub(crate) metrics: Option<String>,
    /// The file of a recording.
    pub(crate) record: Option<PathBuf>,
    /// The file of a trace.
    pub(crate) trace: Option<PathBuf>,
    /// Whether people of this machine may look.
    pub(crate) top: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { how: How::DEFAULT, hosts: Hosts::default(), views: Views::default() }
    }
}

impl Setup {
    /// The same, with processes for `mp_prefetch` or without.
    pub(crate) fn with_workers(self, workers: bool) -> Self {
        Self { how: How { workers, ..self.how }, ..self }
    }
}

impl Views {
    /// Whether there are any.
    pub(crate) fn are_any(&self) -> bool {
        self.metrics.is_some() || self.record.is_some() || self.trace.is_some() || self.top
    }

    /// Has them look at what `builder` starts.
    pub(crate) fn put_on(self, builder: LoaderBuilder<BoxIter<Item>>) -> LoaderBuilder<BoxIter<Item>> {
        let builder = if self.top { builder.top() } else { builder };
        let builder = match self.metrics {
            Some(address) => builder.metrics(address),
            None => builder,
        };
        let builder = match self.record {
            Some(file) => builder.record(file),
            None => builder,
        };
        match self.trace {
            Some(file) => builder.trace(file),
            None => builder,
        }
    }
}

/// What rows are planned by, and what becomes of elements that fail behind that.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) keys: Keys,
    pub(crate) failed: FailedElements,
}

/// The folder of key files, if rows are planned by those, and whether files that are not there are written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) record: bool,
    /// A name of the functions of the dataset.
    pub(crate) functions: String,
}

impl Keys {
    fn files(&self) -> Result<Option<KeyFolder>> {
        let folder = self.folder.as_ref().map(|folder| KeyFolder::new(folder).functions(&*self.functions));
        match (folder, self.record) {
            (Some(folder), true) => Ok(Some(folder.recorded())),
            (Some(folder), false) => Ok(Some(folder.needed())),
            (None, false) => Ok(None),
            (None, true) => {
                let text = "record_keys is True, and keys names no folder for them";
                Err(Error::config(text).help("loader(keys='keys', record_keys=True)"))
            }
        }
    }
}

impl Default for Hosts {
    fn default() -> Self {
        Self {
            part: None,
            deal: Deal::Even,
            guard: GivenGuard::Auto,
            timeout: GuardTimeout::DEFAULT.0,
            plan: Plan { keys: Keys::default(), failed: FailedElements::Error },
        }
    }
}

/// Makes what starts a pass over the rows of `part`, as `deal` says, or of all.
pub(super) fn builder(
    dataset: &BoxIter<Item>,
    how: How,
    workers: Option<&Workers>,
    part: Option<Part>,
    deal: Deal,
    plan: &Plan,
) -> Result<LoaderBuilder<BoxIter<Item>>> {
    let mut builder = dataset.clone().loader().executor(how.threads.0).buffer(how.buffer).deal(deal);
    builder = builder.on_failed_element(plan.failed).accept_changes(how.accept_changes);
    if let Some(files) = plan.keys.files()? {
        builder = builder.keys(files);
    }
    if let Some(workers) = workers {
        builder = workers.run(builder, how.buffer)?;
    }
    Ok(match part {
        Some(part) => builder.part(part),
        None => builder,
    })
}
