//! The next element of a pass. The wait handles signals.

use std::task::Poll;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use super::PyDatasetIterator;
use super::handed::is_interrupt;
use crate::dataset::BoxIter;
use crate::python::buffer::Access;
use crate::python::error;
use crate::python::interpreter::held;
use crate::python::item::Item;
use crate::python::warnings;
use crate::units::Bytes;
use crate::{Loader, Report, Result};

/// Time that a consumer waits before it sees to signals, such as Ctrl-C, and goes on waiting.
const PATIENCE: Duration = Duration::from_millis(50);
/// The interval with worker processes, which may wait for memory that only this thread frees.
const WITH_WORKERS: Duration = Duration::from_millis(5);
const SHORT: Duration = Duration::from_millis(1);

impl PyDatasetIterator {
    /// Returns the next element, or that it is pending, and the state of the pass.
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
    pub(super) fn next_object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.handed.keeps()
            && let Some((object, delivered)) = self.running(py, |loader| self.handed.take(loader))??
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
    fn hand_over<'py>(
        &self,
        py: Python<'py>,
        object: Bound<'py, PyAny>,
        delivered: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Err(interrupt) = py.check_signals() else { return Ok(object) };
        let (given, kept) = ((object.clone().unbind(), delivered), interrupt.clone_ref(py));
        let is_withheld = self.running(py, |loader| self.handed.keep(loader, given, kept))?;
        if is_withheld { Err(interrupt) } else { Ok(object) }
    }

    /// Adds the memory limit of workers to an exception about memory.
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
}

/// Knowledge of a pass that has been asked for an element.
struct Seen {
    delivered: u64,
    short: bool,
    /// Time at which that was known: the interpreter had to be taken again then.
    done: Instant,
}

/// Frees arrays that are garbage: arrays in JAX's queue, which waits for the next call of JAX or a collection, and
/// young cycles. Without garbage it takes a microsecond.
fn nudge(py: Python<'_>) -> PyResult<()> {
    py.import("gc")?.call_method1("collect", (0,)).map(drop)
}
