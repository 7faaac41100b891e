//! A pipeline that runs.

mod handed;
mod moved;
mod next;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyString, PyType};

use self::handed::Handed;
use super::around::Around;
use super::error::OrRaise;
use super::generic;
use super::guard::GivenGuard;
use super::how::{How, Setup};
use super::interpreter::detached;
use super::item::Item;
use super::json;
use super::owner::Owner;
use super::part::{Given, PyPart};
use super::pipeline::Pipeline;
use super::report::PyReport;
use super::warnings;
use super::workers::Workers;
use crate::dataset::BoxIter;
use crate::exec::thread;
use crate::fork::{Origin, ThreadOf};
use crate::sync::{Locked, Regardless};
use crate::{Checkpoint, Error, Executor, Loader};

/// A pass over a dataset, with its state and its report.
///
/// An exception ends the pass. The state is then the state before the failed element.
#[pyclass(name = "DatasetIterator", module = "gristmill", frozen, weakref)]
#[derive(Debug)]
pub(crate) struct PyDatasetIterator {
    dataset: BoxIter<Item>,
    how: How,
    workers: Option<Workers>,
    /// Whether the interpreter is held while an element is made: see [`interpreter`](super::interpreter).
    holds: bool,
    /// `None` after `close`. Only threads without the interpreter lock it, so no thread waits for both.
    loader: Mutex<Option<Loader<BoxIter<Item>>>>,
    /// The thread with the lock, in bits; 0 is none.
    owner: AtomicU64,
    handed: Handed,
    /// Number of the pass, which its threads have, too.
    pass: thread::Pass,
    /// The process that started it.
    origin: Origin,
    /// Whether threads may call Python functions, until it is closed.
    threaded: bool,
    /// Whether hosts are compared by the guard of the part.
    follows: bool,
    /// The address of the endpoint of metrics.
    metrics: Option<SocketAddr>,
    around: Around,
    /// The dataset of the pass. It outlives the loader, and shows the functions to the garbage collector.
    object: Py<PyAny>,
}

/// Python allocates objects at multiples of 16 bytes.
const _: () = assert!(align_of::<PyDatasetIterator>() <= 16);

/// Makes the error of a call to a closed iterator.
#[cold]
fn closed(py: Python<'_>) -> PyErr {
    let told = py.import("gristmill._exit").and_then(|exit| exit.call_method0("closed"));
    told.map_or_else(|failed| failed, PyErr::from_value)
}

/// Makes the error of a call to an iterator by one of its functions.
#[cold]
fn is_running() -> PyErr {
    PyValueError::new_err("the iterator is already running: one of its functions called it")
}

impl PyDatasetIterator {
    /// Starts a pass over the `streams` of `object`: over all rows, or over the rows of a part.
    pub(crate) fn start<'py>(
        object: &Bound<'py, PyAny>,
        streams: &Pipeline,
        setup: Setup,
    ) -> PyResult<Bound<'py, Self>> {
        let workers = if setup.workers { Workers::of(object)? } else { None };
        Self::start_with(object, streams, setup, workers)
    }

    /// Starts a pass whose elementwise part is evaluated by workers.
    pub(crate) fn start_with<'py>(
        object: &Bound<'py, PyAny>,
        streams: &Pipeline,
        Setup { mut how, part, deal, guard, .. }: Setup,
        workers: Option<Workers>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, dataset) = (object.py(), streams.dataset());
        let threaded = how.executor() != Executor::Inline || workers.is_some();
        let holds = !threaded && streams.is_python();
        if how.run.keys().is_some() {
            how.functions = super::keys::functions(object)?;
        }
        let exchange = guard.exchange(py, part.as_ref())?;
        let (part, follows) = (part.map(|part| part.part), guard.is_auto());
        // Views inspect Python stages on their own threads.
        let closes = threaded || how.run.has_views();
        let start = || {
            let builder = how.run.with_views(how.builder(&dataset, workers.as_ref(), part, deal)?);
            if let Some(exchange) = exchange { builder.guard(exchange).build() } else { builder.build() }
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let pass = NEXT.fetch_add(1, Ordering::Relaxed);
        let loader = detached(py, || thread::for_pass(pass, start)).or_raise(py)?;
        let around = Around::default();
        around.show_to(&loader);
        let metrics = loader.metrics_address();
        let (loader, owner, origin) = (Mutex::new(Some(loader)), AtomicU64::new(0), Origin::here());
        let iterator = Bound::new(
            py,
            Self {
                dataset,
                how,
                workers,
                holds,
                loader,
                owner,
                handed: Handed::default(),
                pass,
                origin,
                threaded,
                follows,
                metrics,
                around,
                object: object.clone().unbind(),
            },
        )?;
        // Threads that call Python must have ended before the interpreter does.
        if closes {
            py.import("gristmill._exit")?.call_method1("close_at_exit", (&iterator,))?;
        }
        Ok(iterator)
    }

    /// Calls `ask` with the loader, without the interpreter. Other threads wait. A function of the pipeline must not
    /// call its own iterator, because it would wait for itself.
    fn alone<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut Option<Loader<BoxIter<Item>>>) -> T + Send,
    ) -> PyResult<T> {
        self.check_process(py)?;
        if self.owner() == Some(ThreadOf::here()) {
            return Err(is_running());
        }
        Ok(detached(py, || {
            let mut loader = self.loader.locked();
            let _owner = Owner::enter(&self.owner);
            thread::for_pass(self.pass, || ask(&mut loader))
        }))
    }

    /// Refuses calls of a pass by its own functions, which would wait for themselves: `next`, and all calls that move
    /// or end the pass.
    fn check_thread(&self) -> PyResult<()> {
        if thread::pass() == self.pass { Err(is_running()) } else { Ok(()) }
    }

    /// An interrupted function has not failed: its element is the next element again.
    fn go_on(&self, py: Python<'_>) -> PyResult<()> {
        self.running(py, |loader| {
            let here = loader.state()?;
            self.replace(loader, here, false)
        })?
        .or_raise(py)
    }

    /// Returns the thread that has locked the loader.
    fn owner(&self) -> Option<ThreadOf> {
        ThreadOf::from_bits(self.owner.load(Ordering::Acquire))
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_of_another_process() { Err(self.origin.elsewhere("this iterator")).or_raise(py) } else { Ok(()) }
    }

    /// Whether this process is a fork that lacks the threads of the pass, or the thread of the call. A pass without
    /// threads continues in each process.
    fn is_of_another_process(&self) -> bool {
        !self.origin.is_here() && (self.threaded || self.owner().is_some_and(|owner| !owner.is_here()))
    }

    /// Calls `ask` with the running loader.
    fn running<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut Loader<BoxIter<Item>>) -> T + Send,
    ) -> PyResult<T> {
        self.alone(py, |loader| loader.as_mut().map(ask))?.ok_or_else(|| closed(py))
    }
}

#[pymethods]
impl PyDatasetIterator {
    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        generic(cls, item)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.check_process(py)?;
        self.check_thread()?;
        let start = Instant::now();
        let next = self.next_object(py);
        self.around.called(start);
        next
    }

    /// Starts reading ahead, before the first `next`.
    ///
    /// A pass with threads reads ahead from its start, and a pass without threads cannot. The method exists for Grain's
    /// interface, and changes nothing.
    fn start_prefetch(&self, py: Python<'_>) -> PyResult<()> {
        self.running(py, |_| ())
    }

    /// Returns the position of the consumer as a value of JSON. Elements that were read ahead do not count.
    fn get_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.running(py, |loader| loader.state())?.or_raise(py)?;
        json::of_checkpoint(py, &state)
    }

    /// Moves the pass to a state.
    ///
    /// Args:
    ///     state (Mapping[str, Any] | str | bytes): The result of `get_state`, or its JSON.
    ///
    /// Raises:
    ///     StateError: The state is invalid, or belongs to another pipeline. The message names the first stage that
    ///         differs.
    fn set_state(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_process(py)?;
        self.check_thread()?;
        let json: String = match state.cast::<PyString>() {
            Ok(text) => text.to_string(),
            Err(_) if state.is_instance_of::<pyo3::types::PyBytes>() => {
                let bytes = String::from_utf8(state.extract()?);
                bytes.map_err(|_| Error::state("not a checkpoint: its bytes are not text")).or_raise(py)?
            }
            Err(_) => json::text_of(state)?,
        };
        let checkpoint = Checkpoint::from_json(&json).or_raise(py)?;
        self.running(py, |loader| {
            let (before, was_over) = (loader.state(), loader.is_over());
            let moved = match loader.restore(&checkpoint) {
                Ok(true) => return Ok(()),
                Ok(false) => self.replace(loader, checkpoint, true),
                Err(error) => Err(error),
            };
            // The pass keeps its position.
            if let (Err(_), false, true, Ok(before)) = (&moved, was_over, loader.is_over(), before) {
                self.replace(loader, before, true)?;
            }
            moved
        })?
        .or_raise(py)
    }

    /// Delivers the rows of another part from the next batch on, without a restart: after hosts were added or removed.
    ///
    /// Args:
    ///     part (Part | tuple[int, int] | str): The part, as for `loader`.
    ///
    /// Raises:
    ///     ConfigError: There is no such part. The present part stays.
    fn repart(&self, py: Python<'_>, part: Given) -> PyResult<()> {
        self.check_thread()?;
        let exchange = if self.follows { GivenGuard::Auto.exchange(py, Some(&part))? } else { None };
        self.running(py, |loader| {
            self.moved(loader, |loader| loader.repart(part.part))?;
            match exchange {
                Some(exchange) => loader.guard(exchange),
                None if self.follows => {
                    loader.unguard();
                    Ok(())
                }
                None => Ok(()),
            }
        })?
        .or_raise(py)
    }

    /// Returns the last batches to the pass, which delivers them again: after a step that was not committed.
    ///
    /// Args:
    ///     count (int): Number of batches, 1 or 2, of the batches since the start or a `set_state`.
    ///
    /// Raises:
    ///     StateError: The pass has delivered fewer batches.
    #[pyo3(signature = (count=1))]
    fn back(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.check_thread()?;
        self.running(py, |loader| self.moved(loader, |loader| loader.back(count)))?.or_raise(py)
    }

    /// Changes the run from a batch on, while it continues: an entry of `edits`.
    ///
    /// All hosts call `edit` with equal arguments after equally many batches. States, the report and the run log contain
    /// the edit. A run that resumes needs the edit in its `edits`.
    ///
    /// Args:
    ///     at (int | None): Number of the first batch that changes. By default, the first batch that can change.
    ///     skip (int | None): Number of batches to leave out.
    ///     mix (Mapping[str, float] | None): Weights of the parts of a mix of streams, by their names.
    ///     over (int | None): Number of batches of a linear transition to the weights of `mix`.
    ///     remove (str | Sequence[str] | None): Names of parts to remove from a mix of streams.
    ///     global_batch (int | None): Number of rows of each batch.
    ///     exclude (str | Sequence[Mapping[str, str | int]] | None): Records to leave out: a file with the output of
    ///         `gristmill which`, or a list such as `[{"file": "a.jsonl", "record": 1183}]`.
    ///
    /// Returns:
    ///     The number of the first batch that changes.
    ///
    /// Raises:
    ///     ConfigError: The edit fits no stage, or its batch has begun. The run continues unchanged.
    #[pyo3(signature = (*, at=None, skip=None, mix=None, over=None, remove=None, global_batch=None, exclude=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords of Python")]
    fn edit(
        &self,
        py: Python<'_>,
        at: Option<u64>,
        skip: Option<u64>,
        mix: Option<&Bound<'_, PyAny>>,
        over: Option<u64>,
        remove: Option<&Bound<'_, PyAny>>,
        global_batch: Option<u64>,
        exclude: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let numbers = [("skip", skip), ("over", over), ("global_batch", global_batch)];
        self.add_edit(py, at, numbers, [("mix", mix), ("remove", remove), ("exclude", exclude)])
    }

    /// The part of every batch that is delivered, from the next batch on; `None` without a part.
    #[getter]
    fn part(&self, py: Python<'_>) -> PyResult<Option<PyPart>> {
        self.running(py, |loader| loader.part().cloned().map(PyPart::from))
    }

    /// Numbers of the rows of the last batch in its global batch; `None` before the first batch, and without a part.
    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<Option<Vec<usize>>> {
        self.running(py, |loader| loader.rows().map(|rows| rows.iter().collect()))
    }

    /// Returns the records from which the rows of the last element were made, of this host's part.
    ///
    /// The element is planned again from the state before it. Records without keys are evaluated again if rows depend on
    /// lengths or on dropped elements.
    ///
    /// Returns:
    ///     A dict for each row, with its number in the global batch, `row`, and its `segments`. A segment has `source` and
    ///     `stage`, the name and number of the source; `index`, the number of the record in the source; `file` and `record`,
    ///     the file and the number of the record there; `bytes`, the bytes of the record in the file; `epoch`; `piece`,
    ///     the number of the element among those of the record; and, for packed rows, `tokens` and `cells`: the cells of
    ///     the element in the row, and the cells of the row that they fill. Ranges are `[start, end]`.
    ///
    /// Raises:
    ///     StateError: No element was delivered since the start or the last move.
    ///     ConfigError: The records are unknown. The message names the stage.
    fn lineage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.check_process(py)?;
        self.check_thread()?;
        let rows = self.running(py, |loader| loader.lineage())?.or_raise(py)?;
        let rows = serde_json::to_value(rows).map_err(|e| PyValueError::new_err(e.to_string()))?;
        json::to_python(py, &rows)
    }

    /// Saves the state by Orbax's protocol of stateful checkpointables: see `gristmill.orbax`.
    ///
    /// Args:
    ///     directory (Any): The directory, as Orbax gives it.
    fn save<'py>(slf: &Bound<'py, Self>, directory: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill.orbax")?.call_method1("save", (slf, directory))
    }

    /// Moves the pass to a state that `save` wrote.
    ///
    /// Args:
    ///     directory (Any): The directory, as Orbax gives it.
    ///
    /// Raises:
    ///     StateError: The state is missing, or belongs to another pipeline.
    fn load<'py>(slf: &Bound<'py, Self>, directory: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill.orbax")?.call_method1("load", (slf, directory))
    }

    /// Returns the report of the time so far.
    fn report(&self, py: Python<'_>) -> PyResult<PyReport> {
        self.check_process(py)?;
        self.running(py, |loader| self.around.report(loader)).map(PyReport)
    }

    /// The address of `GET /metrics`, such as `127.0.0.1:9464`, if `loader` has `metrics`.
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.metrics.map(|address| address.to_string())
    }

    /// Ends the threads and drops the elements that were read ahead.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_of_another_process() {
            return Ok(());
        }
        self.check_thread()?;
        let closed = self.alone(py, |loader| drop(loader.take()));
        warnings::log(py);
        closed
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    /// The collector clears garbage first, including functions. While threads may call the functions, they are not
    /// shown, so they are no garbage.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.handed.traverse(&visit)?;
        let closed = || self.loader.try_lock().is_ok_and(|loader| loader.is_none());
        if !self.threaded || closed() { visit.call(&self.object) } else { Ok(()) }
    }

    fn __clear__(&self) {
        self.handed.clear();
    }

    fn __repr__(&self) -> String {
        format!("<gristmill.DatasetIterator of {}>", crate::dataset::chain(&self.dataset))
    }
}

/// Counts seconds that a batch of `iterator` took to get to a device as a wait of its consumer.
#[pyfunction]
pub(super) fn _waited_for_device(iterator: &PyDatasetIterator, seconds: f64) {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    iterator.around.waited_for_device(time);
}

impl Drop for PyDatasetIterator {
    /// Threads that are about to call Python get the interpreter, so that they can end.
    fn drop(&mut self) {
        let is_ours = !self.is_of_another_process();
        let loader = self.loader.get_mut().regardless().take();
        if !is_ours {
            // A thread may have been half-way through a change of it.
            return std::mem::forget(loader);
        }
        if loader.is_some() && thread::pass() == self.pass {
            // One of the pass's functions has dropped the pass, whose threads cannot join themselves.
            let dropped = std::thread::Builder::new().name("gristmill-drop".into()).spawn(move || drop(loader));
            return drop(dropped);
        }
        if loader.is_some() {
            // Without an interpreter no thread waits, and `loader` is dropped with the closure.
            Python::try_attach(move |py| detached(py, move || drop(loader)));
        }
    }
}
