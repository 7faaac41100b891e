//! A pipeline that runs.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyException, PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyString, PyType};

use super::around::Around;
use super::buffer::Access;
use super::error::{self, OrRaise};
use super::generic;
use super::guard::GivenGuard;
use super::how::{Hosts, How, Plan, Setup, builder};
use super::interpreter::{detached, held};
use super::item::Item;
use super::json;
use super::owner::Owner;
use super::part::{Given, PyPart};
use super::report::PyReport;
use super::streams::Streams;
use super::warnings;
use super::workers::Workers;
use crate::dataset::BoxIter;
use crate::fork::{Origin, ThreadOf};
use crate::sync::{Locked, Regardless};
use crate::units::Bytes;
use crate::{Checkpoint, Error, ErrorKind, Executor, Loader, Report, Result};

/// Time that a consumer waits before it sees to signals, such as Ctrl-C, and goes on waiting.
const PATIENCE: Duration = Duration::from_millis(50);
/// The same where worker processes may come to wait for memory that only it can give back, and while they do.
const WITH_WORKERS: Duration = Duration::from_millis(5);
const SHORT: Duration = Duration::from_millis(1);

#[doc = docs!(DatasetIterator)]
#[pyclass(name = "DatasetIterator", module = "gristmill", frozen, weakref)]
#[derive(Debug)]
pub(crate) struct PyDatasetIterator {
    dataset: BoxIter<Item>,
    how: How,
    workers: Option<Workers>,
    /// Whether the interpreter is held while an element is made: see [`interpreter`](super::interpreter).
    holds: bool,
    /// `None` once closed. It is locked by whoever has let go of the interpreter, so nobody waits for both.
    loader: Mutex<Option<Loader<BoxIter<Item>>>>,
    /// The thread that has it locked, in bits; 0 is none.
    owner: AtomicU64,
    /// Locked by the owner of the loader.
    kept: Mutex<Option<Kept>>,
    /// Whether something is kept.
    keeps: AtomicBool,
    /// The process that started it.
    origin: Origin,
    /// Whether threads may call Python functions, until it is closed.
    threaded: bool,
    /// Whether hosts are compared in the way that the part brings along.
    follows: bool,
    plan: Plan,
    /// The address of the endpoint of metrics.
    metrics: Option<SocketAddr>,
    around: Around,
    /// The dataset whose pass it is. It outlives the loader: the functions are shown to the garbage collector there.
    object: Py<PyAny>,
}

/// Makes the error of asking an iterator that is closed.
#[cold]
fn closed(py: Python<'_>) -> PyErr {
    let told = py.import("gristmill._exit").and_then(|exit| exit.call_method0("closed"));
    told.map_or_else(|failed| failed, PyErr::from_value)
}

impl PyDatasetIterator {
    /// Starts a pass over `object`, which holds `streams`: over all rows, or those of a part.
    pub(crate) fn start<'py>(
        object: &Bound<'py, PyAny>,
        streams: &Streams,
        setup: Setup,
    ) -> PyResult<Bound<'py, Self>> {
        let workers = if setup.how.workers { Workers::of(object)? } else { None };
        Self::start_with(object, streams, setup, workers)
    }

    /// The same, where those evaluate its elementwise part.
    pub(crate) fn start_with<'py>(
        object: &Bound<'py, PyAny>,
        streams: &Streams,
        Setup { how, hosts, views }: Setup,
        workers: Option<Workers>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, dataset) = (object.py(), streams.dataset());
        let threaded = how.threads.0 != Executor::Inline || workers.is_some();
        let holds = !threaded && streams.is_python();
        let Hosts { part, deal, guard, timeout, plan } = hosts;
        let exchange = guard.exchange(py, part.as_ref())?;
        let (part, follows) = (part.map(|part| part.part), guard.is_auto());
        // Viewers ask stages of Python for what they are on threads of their own.
        let closes = threaded || views.are_any();
        let start = || {
            let builder = builder(&dataset, how, workers.as_ref(), part, deal, &plan)?.guard_timeout(timeout);
            let builder = views.put_on(builder);
            match exchange {
                Some(exchange) => builder.guard(exchange).build(),
                None => builder.build(),
            }
        };
        let loader = detached(py, start).or_raise(py)?;
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
                kept: Mutex::new(None),
                keeps: AtomicBool::new(false),
                origin,
                threaded,
                follows,
                plan,
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

    /// `ask` of the loader, without the interpreter. Other threads wait for their turn; a function of the pipeline that asks
    /// its own iterator would wait for itself.
    fn alone<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut Option<Loader<BoxIter<Item>>>) -> T + Send,
    ) -> PyResult<T> {
        self.check_process(py)?;
        if self.owner() == Some(ThreadOf::here()) {
            return Err(PyValueError::new_err("the iterator is already running: this is one of its own functions"));
        }
        Ok(detached(py, || {
            let mut loader = self.loader.locked();
            let _owner = Owner::enter(&self.owner);
            ask(&mut loader)
        }))
    }

    /// The next element, or that it is not there yet; and what is known of the pass then.
    fn advance(&self, py: Python<'_>, patience: Duration) -> PyResult<(Poll<Option<Result<Item>>>, Seen)> {
        let (writable, around) = (self.how.writable, &self.around);
        let advance = |loader: &mut Loader<BoxIter<Item>>| {
            around.tell(loader);
            let next = loader.next_within(patience);
            let next = if writable { next.map(|next| next.map(|item| item.map(Item::into_exclusive))) } else { next };
            let (delivered, short) = (loader.delivered(), loader.is_short_of_memory());
            if let Poll::Ready(Some(Ok(item))) = &next {
                around.look(item, delivered);
            }
            (next, Seen { delivered, short, done: Instant::now() })
        };
        let (next, seen) = if self.holds {
            self.running(py, |loader| {
                if loader.waits_for_others(patience) {
                    let seen = Seen { delivered: loader.delivered(), short: false, done: Instant::now() };
                    return (Poll::Pending, seen);
                }
                held(|| advance(loader))
            })?
        } else {
            self.running(py, advance)?
        };
        around.has_lock(seen.done, next.is_ready());
        Ok((next, seen))
    }

    /// The next element, however long it takes, and how many were delivered. The interpreter is let go of while it waits.
    fn wait(&self, py: Python<'_>) -> PyResult<(Option<Result<Item>>, u64)> {
        let mut patience = if self.workers.is_some() { SHORT } else { PATIENCE };
        loop {
            match self.advance(py, patience)? {
                (Poll::Ready(next), seen) => return Ok((next, seen.delivered)),
                (Poll::Pending, Seen { short: true, .. }) => {
                    nudge(py)?;
                    patience = SHORT;
                }
                (Poll::Pending, _) if self.workers.is_some() => patience = WITH_WORKERS,
                (Poll::Pending, _) => {}
            }
            py.check_signals()?;
        }
    }

    /// The next element as an object.
    fn next_object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.keeps.load(Ordering::Relaxed)
            && let Some((object, delivered)) = self.take_kept(py)?
        {
            return self.hand_over(py, object.into_bound(py), delivered).map(Some);
        }
        let access = if self.how.writable { Access::Write } else { Access::Read };
        let (next, delivered) = self.wait(py)?;
        warnings::log(py);
        match next {
            Some(Ok(item)) => match item.into_python_for(py, access) {
                Ok(object) => self.hand_over(py, object, delivered).map(Some),
                // NumPy was being imported, for instance.
                Err(raised) if is_interrupt(py, &raised) && self.running(py, |it| it.withhold(delivered))? => {
                    self.go_on(py)?;
                    Err(raised)
                }
                Err(raised) => Err(raised),
            },
            Some(Err(failed)) => {
                let exception = error::raised(py, &failed);
                error::annotate_record(py, &exception, &failed, error::record(&failed, &self.dataset));
                if is_interrupt(py, &exception) {
                    self.go_on(py)?;
                } else {
                    self.running(py, Loader::tell_failure)?;
                    self.explain_memory(py, &exception);
                    error::annotate(py, &exception, &format!("{delivered} elements were delivered before it"));
                }
                Err(exception)
            }
            None => Ok(None),
        }
    }

    /// Hands over element number `delivered`. Python would drop it if a handler of signals raised after this call, so handlers
    /// run now, and the element is the next one again if one raises.
    fn hand_over<'py>(&self, py: Python<'py>, object: Bound<'py, PyAny>, delivered: u64) -> PyResult<Bound<'py, PyAny>> {
        let Err(interrupt) = py.check_signals() else { return Ok(object) };
        let (given, kept) = (object.clone().unbind(), interrupt.clone_ref(py));
        let is_withheld = self.running(py, |loader| {
            let is_withheld = loader.withhold(delivered);
            let kept = if is_withheld { Kept::Element(given) } else { Kept::Interrupt(kept) };
            *self.kept.locked() = Some(kept);
            self.keeps.store(true, Ordering::Relaxed);
            is_withheld
        })?;
        if is_withheld { Err(interrupt) } else { Ok(object) }
    }

    /// The element that was kept, and how many are delivered with it; `None` if the loader has moved since.
    #[cold]
    fn take_kept(&self, py: Python<'_>) -> PyResult<Option<(Py<PyAny>, u64)>> {
        let (kept, delivered) = self.running(py, |loader| {
            self.keeps.store(false, Ordering::Relaxed);
            let kept = self.kept.locked().take();
            let is_next = matches!(kept, Some(Kept::Element(_))) && loader.hand_over();
            (kept, is_next.then(|| loader.delivered()))
        })?;
        match (kept, delivered) {
            (Some(Kept::Interrupt(interrupt)), _) => Err(interrupt),
            (Some(Kept::Element(element)), Some(delivered)) => Ok(Some((element, delivered))),
            _ => Ok(None),
        }
    }

    /// A function that was interrupted has not failed: its element is the next one again.
    fn go_on(&self, py: Python<'_>) -> PyResult<()> {
        self.running(py, |loader| {
            let here = loader.state()?;
            self.replace(loader, here, false)
        })?
        .or_raise(py)
    }

    /// Puts a pass over the same rows from `checkpoint` on in the place of `loader`; with other hosts it goes on, or begins `anew` as they do.
    fn replace(&self, loader: &mut Loader<BoxIter<Item>>, checkpoint: Checkpoint, anew: bool) -> Result<()> {
        let (part, deal) = (loader.part().cloned(), loader.deal().cloned().unwrap_or_default());
        let builder = builder(&self.dataset, self.how, self.workers.as_ref(), part, deal, &self.plan)?;
        let mut another = builder.resume(checkpoint).build()?;
        another.take_guard(loader, anew);
        another.take_viewers(loader);
        self.around.begin_again();
        *loader = another;
        Ok(())
    }

    /// Has the loader go elsewhere; another takes its place where its thread is busy.
    fn moved(
        &self,
        loader: &mut Loader<BoxIter<Item>>,
        go: impl FnOnce(&mut Loader<BoxIter<Item>>) -> Result<()>,
    ) -> Result<()> {
        match go(loader) {
            Err(error) if error.kind() == ErrorKind::Worker => {
                let there = loader.state()?;
                self.replace(loader, there, false)
            }
            done => done,
        }
    }

    /// The thread that has the loader locked.
    fn owner(&self) -> Option<ThreadOf> {
        ThreadOf::from_bits(self.owner.load(Ordering::Acquire))
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_of_another_process() { Err(self.origin.elsewhere("this iterator")).or_raise(py) } else { Ok(()) }
    }

    /// Whether this process is a fork without what it takes to go on: its threads, or the one that was just asking. What is
    /// evaluated where it is asked for goes on, in each process by itself.
    fn is_of_another_process(&self) -> bool {
        !self.origin.is_here() && (self.threaded || self.owner().is_some_and(|owner| !owner.is_here()))
    }

    /// Says how much memory a worker may have, where it was not enough.
    fn explain_memory(&self, py: Python<'_>, exception: &PyErr) {
        if self.workers.is_none() || !exception.is_instance_of::<PyMemoryError>(py) {
            return;
        }
        let Ok(Report { workers: Some(workers), .. }) = self.running(py, Loader::report) else { return };
        // The last of them may have died of it.
        let limit = workers.workers.iter().map(|worker| worker.heap_limit_bytes).max();
        let limit = limit.map_or_else(|| "a part".to_owned(), |limit| Bytes(limit).to_string());
        let budget = Some(workers.ram_budget).filter(|&bytes| bytes > 0);
        let budget =
            budget.map_or_else(|| "the ram_budget".to_owned(), |bytes| format!("a ram_budget of {}", Bytes(bytes)));
        let note = format!(
            "a worker may have {limit} of private memory (worker_heap), of {budget}: raise ram_budget or worker_heap, or use \
             fewer workers (num_workers)"
        );
        error::annotate(py, exception, &note);
    }

    /// `ask` of the running loader.
    fn running<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut Loader<BoxIter<Item>>) -> T + Send,
    ) -> PyResult<T> {
        self.alone(py, |loader| loader.as_mut().map(ask))?.ok_or_else(|| closed(py))
    }
}

/// What a handler of signals that raised has left for the next call.
#[derive(Debug)]
enum Kept {
    /// The next element, unless the loader moves.
    Element(Py<PyAny>),
    /// The exception: another thread had taken the elements after this one already, so it was handed over.
    Interrupt(PyErr),
}

/// Whether an exception ends the loop, and says nothing of the function that it was raised in: Ctrl-C, `sys.exit` in a handler.
fn is_interrupt(py: Python<'_>, exception: &PyErr) -> bool {
    !exception.is_instance_of::<PyException>(py)
}

/// Knowledge of a pass that has been asked for an element.
struct Seen {
    delivered: u64,
    short: bool,
    /// Time at which that was known: the interpreter had to be taken again then.
    done: Instant,
}

/// Has arrays let go of that are garbage already: by JAX, which queues memory that it is done with until it is called next or
/// Python collects, and those of the youngest cycles. It takes a microsecond where there is nothing.
fn nudge(py: Python<'_>) -> PyResult<()> {
    py.import("gc")?.call_method1("collect", (0,)).map(drop)
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
        let start = Instant::now();
        let next = self.next_object(py);
        self.around.called(start);
        next
    }

    #[doc = docs!(DatasetIterator.start_prefetch)]
    fn start_prefetch(&self, py: Python<'_>) -> PyResult<()> {
        self.running(py, |_| ())
    }

    #[doc = docs!(DatasetIterator.get_state)]
    fn get_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.running(py, |loader| loader.state())?.or_raise(py)?;
        json::of_checkpoint(py, &state)
    }

    #[doc = docs!(DatasetIterator.set_state)]
    fn set_state(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_process(py)?;
        let json: String = match state.cast::<PyString>() {
            Ok(text) => text.to_string(),
            Err(_) if state.is_instance_of::<pyo3::types::PyBytes>() => {
                let bytes = String::from_utf8(state.extract()?);
                bytes.map_err(|_| Error::state("not a checkpoint: its bytes are no text")).or_raise(py)?
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
            // It stays where it was.
            if let (Err(_), false, true, Ok(before)) = (&moved, was_over, loader.is_over(), before) {
                self.replace(loader, before, true)?;
            }
            moved
        })?
        .or_raise(py)
    }

    #[doc = docs!(DatasetIterator.repart)]
    fn repart(&self, py: Python<'_>, part: Given) -> PyResult<()> {
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

    #[doc = docs!(DatasetIterator.back)]
    #[pyo3(signature = (count=1))]
    fn back(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.running(py, |loader| self.moved(loader, |loader| loader.back(count)))?.or_raise(py)
    }

    #[doc = docs!(DatasetIterator.part)]
    #[getter]
    fn part(&self, py: Python<'_>) -> PyResult<Option<PyPart>> {
        self.running(py, |loader| loader.part().cloned().map(PyPart::from))
    }

    #[doc = docs!(DatasetIterator.rows)]
    #[getter]
    fn rows(&self, py: Python<'_>) -> PyResult<Option<Vec<usize>>> {
        self.running(py, |loader| loader.rows().map(|rows| rows.iter().collect()))
    }

    #[doc = docs!(DatasetIterator.save)]
    fn save<'py>(slf: &Bound<'py, Self>, directory: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill.orbax")?.call_method1("save", (slf, directory))
    }

    #[doc = docs!(DatasetIterator.load)]
    fn load<'py>(slf: &Bound<'py, Self>, directory: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill.orbax")?.call_method1("load", (slf, directory))
    }

    #[doc = docs!(DatasetIterator.report)]
    fn report(&self, py: Python<'_>) -> PyResult<PyReport> {
        self.check_process(py)?;
        self.running(py, |loader| self.around.report(loader)).map(PyReport)
    }

    #[doc = docs!(DatasetIterator.metrics_address)]
    #[getter]
    fn metrics_address(&self) -> Option<String> {
        self.metrics.map(|address| address.to_string())
    }

    #[doc = docs!(DatasetIterator.close)]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_of_another_process() {
            return Ok(());
        }
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

    /// A collection first empties what it has found to be garbage, functions, too. As long as threads might call them, it does
    /// not see what they hang on, and so they are none.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if let Ok(kept) = self.kept.try_lock()
            && let Some(Kept::Element(element)) = &*kept
        {
            visit.call(element)?;
        }
        let closed = || self.loader.try_lock().is_ok_and(|loader| loader.is_none());
        if !self.threaded || closed() { visit.call(&self.object) } else { Ok(()) }
    }

    fn __clear__(&self) {
        drop(self.kept.locked().take());
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
        if loader.is_some() {
            // Without an interpreter nobody waits for it, and `loader` is dropped with the closure.
            Python::try_attach(move |py| detached(py, move || drop(loader)));
        }
    }
}
