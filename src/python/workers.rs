//! Worker processes of Python: what they are started with, and how they make the pipeline again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};

use super::far::Engine;
use super::how::Setup;
use super::item::Item;
use super::iter_dataset::PyIterDataset;
use super::iterator::PyDatasetIterator;
use super::loader_options::processes;
use super::pipeline::Pipeline;
use super::{buffer, data_memory, process};
use crate::dataset::{BoxIter, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::loader::LoaderBuilder;
use crate::sync::Locked;
use crate::units::Bytes;
use crate::workers::MpOptions;
use crate::workers::control::Session;
use crate::workers::launch::{Starter, WorkerCommand};
use crate::workers::start::Launch;
use crate::workers::sys::limits;

/// Whoever evaluates a pipeline, if that is neither the consumer nor threads beside it.
#[derive(Debug)]
pub(crate) enum Workers {
    Processes(Box<Processes>),
    Engine(Engine),
}

/// Whoever a loader is to have evaluate its pipeline: the processes that `mp_prefetch` asks for, or not; or an [`Engine`].
#[derive(Debug)]
pub(crate) enum GivenWorkers {
    Processes(bool),
    Engine(Py<PyAny>),
}

default_as!(GivenWorkers, Self::Processes(true));

impl<'a, 'py> FromPyObject<'a, 'py> for GivenWorkers {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match given.hasattr("drive")? {
            true => Ok(Self::Engine(given.to_owned().unbind())),
            false => given.extract().map(Self::Processes),
        }
    }
}

impl GivenWorkers {
    /// Starts a pass over `object`, which holds `streams`.
    pub(crate) fn start<'py>(
        self,
        object: &Bound<'py, PyAny>,
        streams: &Pipeline,
        setup: Setup,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        match self {
            Self::Processes(workers) => PyDatasetIterator::start(object, streams, setup.with_workers(workers)),
            Self::Engine(engine) => {
                let engine = Engine::of(engine.bind(object.py()), object)?;
                PyDatasetIterator::start_with(object, streams, setup, Some(Workers::Engine(engine)))
            }
        }
    }
}

impl Workers {
    /// Finds the workers that `mp_prefetch` asked for somewhere in front of `dataset`, if it did.
    pub(crate) fn of(dataset: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(Processes::of(dataset)?.map(Box::new).map(Self::Processes))
    }

    /// Makes these workers the evaluators of a pass.
    pub(crate) fn run(&self, loader: LoaderBuilder<BoxIter<Item>>) -> Result<LoaderBuilder<BoxIter<Item>>> {
        match self {
            Self::Processes(processes) => processes.run(loader),
            Self::Engine(engine) => engine.run(loader),
        }
    }
}

/// Recipe by which worker processes of a pipeline start.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    /// Bytes of which `gristmill._worker` makes the pipeline.
    payload: Arc<Vec<u8>>,
    /// The function that makes it large, if one does.
    largest: Option<String>,
    command: WorkerCommand,
    /// Modules that the process which forks workers has loaded.
    modules: Vec<String>,
    /// Starter of the workers of the first pass: begun while the payload was written.
    begun: Arc<Mutex<Option<Starter>>>,
    /// The stages of that pipeline, a line each.
    stages: Vec<String>,
    options: MpOptions,
    /// Elements that are kept ready.
    buffer: usize,
}

/// Findings of `gristmill._workers`.
#[derive(FromPyObject)]
struct Found<'py> {
    dataset: Bound<'py, PyIterDataset>,
    payload: Bound<'py, PyAny>,
    program: PathBuf,
    arguments: Vec<String>,
    folder: Option<PathBuf>,
    to_fork: Option<Vec<String>>,
    options: Bound<'py, PyDict>,
    interpreted: bool,
    start_workers: Option<usize>,
    start_threads: Option<usize>,
    buffer: usize,
}

impl Processes {
    /// Finds those that `mp_prefetch` asked for somewhere in front of `dataset`, if it did.
    fn of(dataset: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = dataset.py();
        // What is asked of every pass must not cost an import that few need.
        if !py.import("gristmill._recipe")?.call_method1("asks_for_workers", (dataset,))?.is_truthy()? {
            return Ok(None);
        }
        let found = py.import("gristmill._workers")?.call_method1("launch", (dataset,))?;
        let Some(found) = found.extract::<Option<Found<'_>>>()? else { return Ok(None) };
        let Found { dataset, payload, program, arguments, folder, to_fork, buffer, .. } = found;
        let options = processes(&found.options, "num_workers")?.mp_options();
        let mut options = MpOptions { interpreted: found.interpreted, ..options };
        (options.numbers.start_workers, options.numbers.start_threads) = (found.start_workers, found.start_threads);
        let stages = (&dataset.get().dataset() as &dyn Stage).lines();
        let arguments = arguments.into_iter().map(Into::into).collect();
        let to_fork = to_fork.map(|arguments| arguments.into_iter().map(Into::into).collect());
        let command = WorkerCommand { program, arguments, folder, to_fork };
        let starter = Starter::new(command.clone());
        starter.begin();
        let (payload, modules, largest): (Vec<u8>, Vec<String>, Option<String>) = payload.call0()?.extract()?;
        starter.load(&modules);
        let begun = Arc::new(Mutex::new(Some(starter)));
        Ok(Some(Self { payload: Arc::new(payload), largest, command, modules, begun, stages, options, buffer }))
    }

    fn run(&self, loader: LoaderBuilder<BoxIter<Item>>) -> Result<LoaderBuilder<BoxIter<Item>>> {
        let (payload, largest, starter) = (self.payload.clone(), self.largest.clone(), Arc::new(self.starter()));
        let launch =
            Launch::of_bytes(rebuild_here, payload, largest, starter, self.stages.clone(), self.options.clone())?;
        Ok(loader.buffer_at_least(self.buffer).backend(launch))
    }
}

impl Processes {
    /// Makes what starts the workers of one pass: a process that forks them ends with it.
    fn starter(&self) -> Starter {
        let begun = self.begun.locked().take();
        begun.unwrap_or_else(|| {
            let starter = Starter::new(self.command.clone());
            starter.load(&self.modules);
            starter
        })
    }
}

/// In a worker process: the pipeline again.
fn rebuild_here(payload: Vec<u8>, session: &Session) -> Result<BoxIter<Item>> {
    data_memory::admit();
    rebuild(payload, session.place)
}

/// In any worker, the one in `place` of those there are: the pipeline again.
pub(super) fn rebuild(payload: Vec<u8>, place: u64) -> Result<BoxIter<Item>> {
    let bytes = Bytes(payload.len() as u64);
    Python::attach(|py| {
        let made = || {
            let build = py.import("gristmill._worker")?.getattr("build")?;
            let given = buffer::to_bytes(py, &payload)?;
            // What is made of it takes as much again.
            drop(payload);
            let built = build.call1((given, place));
            let built = built.inspect_err(|e| e.print(py))?;
            let built = built.cast_into::<PyIterDataset>()?;
            Ok(super::convert::keeping(built.get().dataset(), built.unbind().into_any()))
        };
        made().map_err(|e: PyErr| {
            let text = format!("a worker cannot make the pipeline: {e}");
            let error = Error::new(ErrorKind::Worker, text);
            if !e.is_instance_of::<PyMemoryError>(py) {
                return error;
            }
            let limit = limits::data_cap().map_or_else(|| "the limit".to_owned(), |cap| Bytes(cap).to_string());
            Error::new(
                ErrorKind::Worker,
                format!("a worker cannot make the pipeline: it takes more than {limit} of heap; functions carry {bytes}"),
            )
            .help("open large data inside the function, by its path; or raise ram_budget or worker_heap, or use fewer workers")
        })
    })
}

/// Has the kernel end this process with the thread that started it.
#[pyfunction]
pub(crate) fn _end_with_parent() {
    crate::workers::end_with_parent();
}

/// Takes over in a worker process, and never returns there.
///
/// # Errors
/// In a process that was not started as one.
#[pyfunction]
pub(crate) fn _serve(py: Python<'_>) -> PyResult<()> {
    process::becomes_worker();
    py.detach(crate::workers::init);
    Err(PyRuntimeError::new_err("this process was not started as a worker of gristmill"))
}
