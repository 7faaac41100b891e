//! Worker processes of Python: what they are started with, and how they make the pipeline again.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use super::item::Item;
use super::iter_dataset::PyIterDataset;
use super::{buffer, data_memory, process};
use crate::dataset::{BoxIter, Stage};
use crate::error::{Error, ErrorKind, Result};
use crate::loader::LoaderBuilder;
use crate::sync::Locked;
use crate::units::Bytes;
use crate::workers::control::Session;
use crate::workers::launch::{Starter, WorkerCommand};
use crate::workers::start::Launch;
use crate::workers::sys::limits;
use crate::workers::{Count, MpOptions, Poison};

/// How to start the workers of a pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Workers {
    /// What `gristmill._worker` makes the pipeline of.
    payload: Arc<Vec<u8>>,
    /// Which function makes it large, if it is.
    largest: Option<String>,
    command: WorkerCommand,
    /// What the process that forks workers has loaded.
    modules: Vec<String>,
    /// What starts those of the first pass: begun while the payload was written.
    begun: Arc<Mutex<Option<Starter>>>,
    /// The stages of that pipeline, a line each.
    stages: Vec<String>,
    options: MpOptions,
    /// Elements that are kept ready.
    buffer: usize,
}

/// What `gristmill._workers` finds out.
#[derive(FromPyObject)]
struct Found<'py> {
    dataset: Bound<'py, PyIterDataset>,
    payload: Bound<'py, PyAny>,
    program: PathBuf,
    arguments: Vec<String>,
    folder: Option<PathBuf>,
    to_fork: Option<Vec<String>>,
    options: Choices,
    buffer: usize,
}

/// `gristmill.MpOptions`, with sizes in bytes and times in seconds.
#[derive(FromPyObject)]
struct Choices {
    workers: Option<usize>,
    max_workers: Option<usize>,
    threads_per_worker: Option<usize>,
    ram_budget: Option<u64>,
    worker_heap: Option<u64>,
    max_element: Option<u64>,
    deadline: Option<f64>,
    retries: u32,
    on_poison: String,
    tune: bool,
    interpreted: bool,
    start_workers: Option<usize>,
    start_threads: Option<usize>,
}

impl Workers {
    /// Those that `mp_prefetch` asked for somewhere in front of `dataset`, if it did.
    pub(crate) fn of(dataset: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = dataset.py();
        // What is asked of every pass must not cost an import that few need.
        if !py.import("gristmill._recipe")?.call_method1("asks_for_workers", (dataset,))?.is_truthy()? {
            return Ok(None);
        }
        let found = py.import("gristmill._workers")?.call_method1("launch", (dataset,))?;
        let Some(found) = found.extract::<Option<Found<'_>>>()? else { return Ok(None) };
        let Found { dataset, payload, program, arguments, folder, to_fork, options, buffer } = found;
        let stages = (&dataset.get().dataset() as &dyn Stage).lines();
        let arguments = arguments.into_iter().map(Into::into).collect();
        let to_fork = to_fork.map(|arguments| arguments.into_iter().map(Into::into).collect());
        let command = WorkerCommand { program, arguments, folder, to_fork };
        let (options, starter) = (options.chosen()?, Starter::new(command.clone()));
        starter.begin();
        let (payload, modules, largest): (Vec<u8>, Vec<String>, Option<String>) = payload.call0()?.extract()?;
        starter.load(&modules);
        let begun = Arc::new(Mutex::new(Some(starter)));
        Ok(Some(Self { payload: Arc::new(payload), largest, command, modules, begun, stages, options, buffer }))
    }

    /// Has them run what `loader` was to run, `buffer` elements ahead.
    pub(crate) fn run(
        &self,
        loader: LoaderBuilder<BoxIter<Item>>,
        buffer: usize,
    ) -> Result<LoaderBuilder<BoxIter<Item>>> {
        let (payload, largest, starter) = (self.payload.clone(), self.largest.clone(), Arc::new(self.starter()));
        let launch = Launch::of_bytes(rebuild, payload, largest, starter, self.stages.clone(), self.options.clone())?;
        Ok(loader.buffer(buffer.max(self.buffer)).backend(launch))
    }
}

impl Workers {
    /// What starts the workers of one pass: a process that forks them ends with it.
    fn starter(&self) -> Starter {
        let begun = self.begun.locked().take();
        begun.unwrap_or_else(|| {
            let starter = Starter::new(self.command.clone());
            starter.load(&self.modules);
            starter
        })
    }
}

impl Choices {
    fn chosen(self) -> PyResult<MpOptions> {
        let count = |n: Option<usize>| n.map_or(Count::Auto, Count::Fixed);
        let poison = if self.on_poison == "skip" { Poison::Skip } else { Poison::Error };
        let deadline = self.deadline.map(Duration::try_from_secs_f64).transpose();
        let deadline = deadline.map_err(|e| PyValueError::new_err(format!("deadline: {e}")))?;
        let mut options = MpOptions::auto()
            .workers(count(self.workers))
            .threads_per_worker(count(self.threads_per_worker))
            .deadline(deadline)
            .retries(self.retries)
            .on_poison(poison)
            .tune(self.tune)
            .interpreted(self.interpreted);
        if let Some(most) = self.max_workers {
            options = options.max_workers(most);
        }
        if let Some(workers) = self.start_workers {
            options = options.start_workers(workers);
        }
        if let Some(threads) = self.start_threads {
            options = options.start_threads(threads);
        }
        if let Some(bytes) = self.ram_budget {
            options = options.ram_budget(bytes);
        }
        if let Some(bytes) = self.worker_heap {
            options = options.worker_heap(bytes);
        }
        if let Some(bytes) = self.max_element {
            options = options.max_element(bytes);
        }
        Ok(options)
    }
}

/// In a worker: the pipeline again.
fn rebuild(payload: Vec<u8>, session: &Session) -> Result<BoxIter<Item>> {
    let bytes = Bytes(payload.len() as u64);
    data_memory::admit();
    Python::attach(|py| {
        let made = || {
            let build = py.import("gristmill._worker")?.getattr("build")?;
            let given = buffer::to_bytes(py, &payload)?;
            // What is made of it takes as much again.
            drop(payload);
            let built = build.call1((given, session.place()));
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
            let limit = limits::data_cap().map_or_else(|| "what it may have".to_owned(), |cap| Bytes(cap).to_string());
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
