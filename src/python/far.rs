//! Workers on other machines, which an engine written in Python starts and reaches.

use std::time::{Duration, Instant};

use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes};

use super::error::OrRaise;
use super::interpreter::detached;
use super::item::Item;
use super::iter_dataset::PyIterDataset;
use super::{buffer, workers};
use crate::dataset::{BoxIter, Stage};
use crate::element::{Array, Buffer, DType};
use crate::error::{Error, ErrorKind, Result};
use crate::loader::LoaderBuilder;
use crate::workers::far::{self, Blame, Compress, Evaluator, FarLaunch, FarOptions, LinkOptions, Order, Pooled};

/// An engine of Python's that has workers evaluate a pipeline.
///
/// It has the methods `prepare(dataset)`, which returns the dataset that workers evaluate, and `drive(office)`, which begins to follow
/// the orders of a pass; and the attributes `workers`, `threads`, `ram_budget`, `block`, `buffer`, `hedge`,
/// `deadline` and `idle` (seconds), `shared`, `compress` (`"auto"`, `"never"`, `"always"`) and `home`, the name of this machine.
#[derive(Debug)]
pub(crate) struct Engine {
    object: Py<PyAny>,
    options: FarOptions,
    links: LinkOptions,
    buffer: usize,
}

impl Engine {
    /// The engine `object` for `dataset`.
    pub(crate) fn of(object: &Bound<'_, PyAny>, dataset: &Bound<'_, PyAny>) -> PyResult<Self> {
        let evaluated = object.call_method1("prepare", (dataset,))?.cast_into::<PyIterDataset>()?;
        Self::with_stages(object, (&evaluated.get().dataset() as &dyn Stage).lines())
    }

    /// The engine `object`, which knows already what its workers evaluate: these stages.
    fn with_stages(object: &Bound<'_, PyAny>, stages: Vec<String>) -> PyResult<Self> {
        let number = |name: &str| object.getattr(name)?.extract::<u64>();
        let workers = object.getattr("workers")?.extract()?;
        let hedge = object.getattr("hedge")?.extract()?;
        let threads = object.getattr("threads")?.extract::<usize>()?;
        let deadline = object.getattr("deadline")?.extract::<Option<f64>>()?;
        let deadline = deadline.and_then(|deadline| Duration::try_from_secs_f64(deadline).ok());
        let shared = object.getattr("shared")?.extract()?;
        let (ram_budget, block, tick) = (number("ram_budget")?, number("block")?, Duration::from_secs(1));
        let idle = object.getattr("idle")?.extract::<f64>()?;
        let idle = Duration::try_from_secs_f64(idle).unwrap_or(Duration::MAX);
        let options = FarOptions { workers, threads, ram_budget, block, hedge, deadline, idle, tick, shared, stages };
        let buffer = object.getattr("buffer")?.extract()?;
        let links = links(object)?;
        Ok(Self { object: object.clone().unbind(), options, links, buffer })
    }

    /// Makes the engine the evaluator of a pass.
    pub(crate) fn run(&self, loader: LoaderBuilder<BoxIter<Item>>) -> Result<LoaderBuilder<BoxIter<Item>>> {
        Ok(loader.buffer_at_least(self.buffer).backend(self.begin()?))
    }

    /// Begins to follow the orders of one pass.
    fn begin(&self) -> Result<FarLaunch> {
        let (office, exchange) = far::exchange_with(self.links.clone());
        let begun = Python::attach(|py| self.object.call_method1(py, "drive", (PyOffice(office),)).map(drop));
        begun.map_err(|e| Error::new(ErrorKind::Worker, format!("workers on other machines cannot be driven: {e}")))?;
        Ok(FarLaunch::new(exchange, self.options.clone()))
    }
}

/// The first byte of a payload that is a pipeline file: others are `gristmill._workers`'.
const FILE: u8 = b'f';

/// Starts the workers that a command asks for.
pub(super) fn of_command(request: crate::cli::elsewhere::Request) -> Result<Box<dyn crate::loader::Backend>> {
    let crate::cli::elsewhere::Request { cluster, workers, threads, ram_budget, pipeline, stages } = request;
    let payload = postcard::to_extend(&pipeline, vec![FILE])
        .map_err(|e| Error::new(ErrorKind::Worker, format!("the pipeline file cannot be sent: {e}")))?;
    let engine = Python::attach(|py| {
        let engine = || {
            let given = (cluster.0, PyBytes::new(py, &payload), workers, threads, ram_budget);
            Engine::with_stages(&py.import("gristmill.ray._command")?.call_method1("engine", given)?, stages)
        };
        engine().map_err(|e| refused(py, &e))
    })?;
    Ok(Box::new(engine.begin()?))
}

/// What an engine says that cannot start, as a command tells it.
fn refused(py: Python<'_>, error: &PyErr) -> Error {
    let kind = match error.get_type(py).name() {
        Ok(name) if name == "ConfigError" => ErrorKind::Config,
        Ok(name) if name == "UnsupportedError" => ErrorKind::Unsupported,
        _ => ErrorKind::Worker,
    };
    Error::new(kind, error.value(py).to_string())
}

/// When blocks are to be packed, and the name of this machine.
fn links(engine: &Bound<'_, PyAny>) -> PyResult<LinkOptions> {
    let compress = match engine.getattr("compress")?.extract::<String>()?.as_str() {
        "never" => Compress::Never,
        "always" => Compress::Always,
        _ => Compress::Auto,
    };
    Ok(LinkOptions { compress, home: engine.getattr("home")?.extract()? })
}

/// An order, as an engine is told: what it is, the worker, and what comes with it.
type Told<'py> = (&'static str, i64, Option<Bound<'py, PyAny>>);

/// The place where an engine finds what it is to do for one pass, and says what came of it.
#[pyclass(name = "_Office", module = "gristmill._gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyOffice(far::Driver);

#[pymethods]
impl PyOffice {
    /// The next order within so many seconds: `("start", worker, place)`, `("send", worker, message)`,
    /// `("end", worker, None)`, `("kill", worker, None)`; `("wait", -1, None)` where there is none, and `None` once there will be none.
    fn next_order<'py>(&self, py: Python<'py>, within: f64) -> PyResult<Option<Told<'py>>> {
        let within = Duration::try_from_secs_f64(within).unwrap_or_default();
        let Ok(order) = detached(py, || self.0.next_order(within)) else { return Ok(None) };
        Ok(Some(match order {
            None => ("wait", -1, None),
            Some(Order::Start { number, place }) => ("start", number as i64, Some(place.into_pyobject(py)?.into_any())),
            Some(Order::Send { number, message }) => {
                ("send", number as i64, Some(PyBytes::new(py, &message).into_any()))
            }
            Some(Order::End { number }) => ("end", number as i64, None),
            Some(Order::Kill { number }) => ("kill", number as i64, None),
        }))
    }

    fn started(&self, number: u64, who: String, node: String) {
        self.0.started(number, who, node);
    }

    fn cannot_start(&self, number: u64, why: String) {
        self.0.cannot_start(number, why);
    }

    /// Takes an answer of a worker, with its block, an array of bytes that nobody writes to any more, and the seconds for which the link was busy with
    /// that, where they were seen.
    #[pyo3(signature = (number, answer, block, took=None))]
    fn answered(
        &self,
        py: Python<'_>,
        number: u64,
        answer: &[u8],
        block: Option<&Bound<'_, PyUntypedArray>>,
        took: Option<f64>,
    ) -> PyResult<()> {
        let block = match block {
            Some(block) if block.len() > 0 => Some(buffer::share_numpy(block).or_raise(py)?.into_buffer()),
            _ => None,
        };
        let took = took.and_then(|took| Duration::try_from_secs_f64(took).ok());
        self.0.answered(number, answer, block, took);
        Ok(())
    }

    fn refused(&self, number: u64, why: String) {
        self.0.refused(number, why);
    }

    /// A worker has ended. `blame` is whose element ended it: `"own"`, `"others"`, or `"unknown"`.
    #[pyo3(signature = (number, why, outside, blame="own"))]
    fn gone(&self, number: u64, why: String, outside: bool, blame: &str) {
        let blame = match blame {
            "others" => Blame::Others,
            "unknown" => Blame::Unknown,
            _ => Blame::Own,
        };
        self.0.ended(number, why, outside, blame);
    }
}

/// A worker: what an engine runs on another machine.
#[pyclass(name = "_Evaluator", module = "gristmill._gristmill", frozen)]
pub(crate) struct PyEvaluator(Evaluator);

#[pymethods]
impl PyEvaluator {
    /// The worker in `place` on `host` that evaluates what `payload` makes.
    #[new]
    fn new(host: String, payload: Vec<u8>, place: u64) -> Self {
        if let Some(file) = payload.strip_prefix(&[FILE]) {
            let pipeline = postcard::from_bytes::<crate::spec::Pipeline>(file);
            return Self(Evaluator::new(host, move || {
                let unread = |e| Error::new(ErrorKind::Worker, format!("a worker cannot make the pipeline file: {e}"));
                pipeline.map_err(unread)?.build()
            }));
        }
        Self(Evaluator::new(host, move || workers::rebuild(payload, place)))
    }

    /// Answers a message: the answer, and the block that a task made.
    fn hear<'py>(&self, py: Python<'py>, message: &[u8]) -> PyResult<Answered<'py>> {
        as_answer(py, detached(py, || self.0.hear(message)).or_raise(py)?)
    }
}

/// A worker that several passes lease: what an engine runs in an actor of a pool.
#[pyclass(name = "_Pooled", module = "gristmill._gristmill", frozen)]
pub(crate) struct PyPooled(Pooled<BoxIter<Item>>);

#[pymethods]
impl PyPooled {
    /// The worker in `place` on `host`, which evaluates on so many threads and keeps answers of so many bytes for a moment. `note(lease, True)` is
    /// called before an element that may kill the worker, and `note(lease, False)` after the element.
    #[new]
    fn new(host: String, place: u64, threads: usize, kept_bytes: usize, note: Py<PyAny>) -> Self {
        let note = move |lease: &str, begins: bool| {
            if let Err(error) = Python::attach(|py| note.call1(py, (lease, begins)).map(drop)) {
                tracing::warn!("no note is taken of an element that may kill this worker: {error}");
            }
        };
        Self(Pooled::new(host, threads, kept_bytes, note, move |payload| workers::rebuild(payload, place)))
    }

    /// A pass leases it, to evaluate what `payload` makes; passes with the same `key` have one pipeline.
    fn join(&self, py: Python<'_>, lease: String, key: &str, payload: Vec<u8>) {
        detached(py, || self.0.join(lease, key, payload));
    }

    /// Answers a message of a lease, as `_Evaluator.hear` does.
    fn hear<'py>(&self, py: Python<'py>, lease: &str, message: &[u8]) -> PyResult<Answered<'py>> {
        as_answer(py, detached(py, || self.0.hear(lease, message)).or_raise(py)?)
    }

    /// The pass of a lease is still there. Returns whether it is known.
    fn beat(&self, py: Python<'_>, lease: &str) -> bool {
        detached(py, || self.0.beat(lease))
    }

    /// A pass lets it go.
    fn leave(&self, py: Python<'_>, lease: &str) {
        detached(py, || self.0.leave(lease));
    }

    /// Ends leases of which nothing was heard for so many seconds. Returns how many there are.
    fn look_around(&self, py: Python<'_>, patience: f64) -> usize {
        detached(py, || self.0.expire(Instant::now(), Duration::try_from_secs_f64(patience).unwrap_or(Duration::MAX)))
    }
}

/// An answer, and the block that a task made.
type Answered<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyAny>>);

fn as_answer(py: Python<'_>, (answer, block): (Vec<u8>, Option<Buffer>)) -> PyResult<Answered<'_>> {
    let block = block.map(|block| as_array(py, block)).transpose()?;
    Ok((PyBytes::new(py, &answer), block))
}

fn as_array(py: Python<'_>, block: Buffer) -> PyResult<Bound<'_, PyAny>> {
    let len = block.len();
    let array = Array::new(DType::U8, &[len], block).or_raise(py)?;
    buffer::to_numpy(py, array, buffer::Access::Read)
}
