//! Keyword arguments of `loader`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

use super::arguments;
use super::deal::GivenDeal;
use super::error::OrRaise;
use super::how::Setup;
use super::iterator::PyDatasetIterator;
use super::pipeline::Pipeline;
use super::workers::GivenWorkers;
use crate::spec::RunOptions;
use crate::spec::node::Tree;
use crate::units::parse_amount;

/// Options of a pass.
#[derive(Debug, Default)]
pub(super) struct LoaderOptions {
    setup: Setup,
    workers: GivenWorkers,
}

impl LoaderOptions {
    /// Reads keyword arguments. An option that is `None` or missing has its default.
    ///
    /// # Errors
    /// `TypeError` for an unknown name, `ConfigError` for a wrong value, and errors of single options.
    pub(super) fn of(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (mut options, mut run) = (Self::default(), Vec::new());
        let Self { setup, workers } = &mut options;
        for (name, value) in given.into_iter().flatten() {
            let name = name.cast_into::<PyString>()?;
            let name = name.to_str()?;
            // `guard=None` turns the guard off.
            if value.is_none() && name != "guard" {
                check_name(name)?;
                continue;
            }
            match name {
                "accept_changes" => setup.how.accept_changes = option(name, &value)?,
                "writable" => setup.how.writable = option(name, &value)?,
                "workers" => *workers = option(name, &value)?,
                "part" => setup.part = option(name, &value)?,
                "deal" => setup.deal = option::<GivenDeal>(name, &value)?.0,
                "guard" => setup.guard = option(name, &value)?,
                "threads" if value.is_instance_of::<PyInt>() && !value.is_truthy()? => {
                    run.push(("inline".to_owned(), Tree::Bool(true)));
                }
                _ => {
                    check_name(name)?;
                    run.push((name.to_owned(), arguments::value(&value, 0)?));
                }
            }
        }
        setup.how.run = RunOptions::from_values(run, str::to_owned).or_raise(py)?;
        Ok(options)
    }

    /// Starts a pass over `object`, which holds `streams`.
    pub(super) fn start<'py>(
        self,
        object: &Bound<'py, PyAny>,
        streams: &Pipeline,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        self.workers.start(object, streams, self.setup)
    }
}

/// Options of `loader` that are no run options.
const PYTHONS: [&str; 3] = ["accept_changes", "workers", "writable"];

/// Checks that `loader` has an option of this name.
fn check_name(name: &str) -> PyResult<()> {
    let is_of_processes = RunOptions::is_of_processes(name) && name != "workers";
    if PYTHONS.contains(&name) || RunOptions::option(name).is_some() && !is_of_processes && name != "inline" {
        return Ok(());
    }
    let hint = match name {
        _ if is_of_processes || name == "num_workers" => {
            ": mp_prefetch(num_workers=…) takes the options of worker processes, and loader(threads=…) threads"
        }
        "inline" => ": threads=0 evaluates in the thread of the consumer",
        "prefetch_factor" | "prefetch" | "buffer_size" => ": buffer=… batches are kept ready",
        "batch_size" => ": batch(…) before loader() makes batches",
        "seed" => ": seed(…) of the dataset sets it",
        _ => "",
    };
    Err(PyTypeError::new_err(format!("loader() got an unexpected keyword argument '{name}'{hint}")))
}

/// Checks the keyword arguments of a later `loader`.
#[pyfunction]
#[pyo3(signature = (**options))]
pub(crate) fn _check_loader_options(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    LoaderOptions::of(py, options).map(drop)
}

/// Reads options of worker processes by name. Errors spell `workers` as `count`.
///
/// # Errors
/// `ConfigError` for a wrong value.
pub(super) fn processes(given: &Bound<'_, PyDict>, count: &str) -> PyResult<RunOptions> {
    let mut named = Vec::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        match (value.is_none(), &*name) {
            (true, "deadline") => named.push((name, Tree::Str("none".to_owned()))),
            (true, _) => {}
            (false, _) => named.push((name, arguments::value(&value, 0)?)),
        }
    }
    let spell = |name: &str| if name == "workers" { count.to_owned() } else { name.to_owned() };
    RunOptions::from_values(named, spell).or_raise(given.py())
}

/// Checks options of `mp_prefetch`.
#[pyfunction]
pub(crate) fn _check_processes(options: &Bound<'_, PyDict>, count: &str) -> PyResult<()> {
    processes(options, count).map(drop)
}

/// Parses a size such as `2GiB`; `None` if it is none.
#[pyfunction]
fn _parse_amount(text: &str) -> Option<f64> {
    parse_amount(text)
}

/// Adds the functions by which `gristmill` checks options before they are used, and the names of options of worker processes.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_check_loader_options, module)?)?;
    module.add_function(wrap_pyfunction!(_check_processes, module)?)?;
    module.add_function(wrap_pyfunction!(_parse_amount, module)?)?;
    module.add("_PROCESSES", RunOptions::processes().map(|option| option.name).collect::<Vec<_>>())
}

/// Extracts the value of an option; a `TypeError` names the option.
fn option<'a, 'py, T: FromPyObject<'a, 'py>>(name: &str, value: &'a Bound<'py, PyAny>) -> PyResult<T> {
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
