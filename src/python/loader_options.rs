//! Options of `loader`: keyword arguments, the same of both kinds of datasets.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::deal::GivenDeal;
use super::failed::OnFailed;
use super::guard::GuardTimeout;
use super::how::Setup;
use super::iterator::PyDatasetIterator;
use super::streams::Streams;
use super::workers::GivenWorkers;

/// Options of a pass, as they are given.
#[derive(Debug, Default)]
pub(super) struct LoaderOptions {
    setup: Setup,
    workers: GivenWorkers,
}

impl LoaderOptions {
    /// The options in `given`, and what is not there as it is by default.
    ///
    /// # Errors
    /// `TypeError` for one that there is not, or of another type; those of single options.
    pub(super) fn of(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Self::default();
        let (mut failed, mut limit) = (OnFailed::ERROR, None);
        let Self { setup: Setup { how, hosts, views }, workers } = &mut options;
        for (name, value) in given.into_iter().flatten() {
            let name = name.cast::<PyString>()?;
            let name = name.to_str()?;
            match name {
                "threads" => how.threads = option(name, &value)?,
                "buffer" => how.buffer = option(name, &value)?,
                "accept_changes" => how.accept_changes = option(name, &value)?,
                "writable" => how.writable = option(name, &value)?,
                "workers" => *workers = option(name, &value)?,
                "part" => hosts.part = option(name, &value)?,
                "deal" => hosts.deal = option::<GivenDeal>(name, &value)?.0,
                "guard" => hosts.guard = option(name, &value)?,
                "guard_timeout" => hosts.timeout = option::<GuardTimeout>(name, &value)?.0,
                "keys" => hosts.plan.keys.folder = option(name, &value)?,
                "record_keys" => hosts.plan.keys.record = option(name, &value)?,
                "on_failed_element" => failed = option(name, &value)?,
                "failed_element_limit" => limit = option(name, &value)?,
                "metrics" => {
                    views.metrics = match value.extract::<u16>() {
                        Ok(port) => Some(port.to_string()),
                        Err(_) => option(name, &value)?,
                    }
                }
                "record" => views.record = option(name, &value)?,
                "trace" => views.trace = option(name, &value)?,
                "top" => views.top = option(name, &value)?,
                _ => {
                    let hint = match name {
                        "num_workers" | "ram_budget" | "worker_heap" => {
                            ": worker processes are those of mp_prefetch(num_workers=…), and threads those of loader(threads=…)"
                        }
                        "prefetch_factor" | "prefetch" | "buffer_size" => ": batches that are made ahead are buffer=…",
                        "batch_size" => ": batches are made by batch(…), in front of loader()",
                        "seed" => ": seed(…) of the data set sets it",
                        _ => "",
                    };
                    let text = format!("loader() got an unexpected keyword argument '{name}'{hint}");
                    return Err(PyTypeError::new_err(text));
                }
            }
        }
        hosts.plan.failed = failed.up_to(py, limit)?;
        Ok(options)
    }

    /// Starts a pass over `object`, which holds `streams`.
    pub(super) fn start<'py>(
        self,
        object: &Bound<'py, PyAny>,
        streams: &Streams,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        self.workers.start(object, streams, self.setup)
    }
}

/// The value of an option; a wrong type is told with its name.
fn option<'a, 'py, T>(name: &str, value: &'a Bound<'py, PyAny>) -> PyResult<T>
where
    T: FromPyObject<'a, 'py>,
{
    value.extract().map_err(|error: T::Error| {
        let (py, error) = (value.py(), error.into());
        if !error.get_type(py).is(py.get_type::<PyTypeError>()) {
            return error;
        }
        let named = PyTypeError::new_err(format!("argument '{name}': {}", error.value(py)));
        named.set_cause(py, error.cause(py));
        named
    })
}
