//! Elements between pass and loop. Python drops the result of a call if a signal handler raises directly after it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};

use crate::Loader;
use crate::dataset::BoxIter;
use crate::python::item::Item;
use crate::sync::Locked;

/// Whether an exception ends the loop without being an error of the function that raised it: Ctrl-C, or `sys.exit` in
/// a signal handler.
pub(super) fn is_interrupt(py: Python<'_>, exception: &PyErr) -> bool {
    !exception.is_instance_of::<PyException>(py)
}

/// The element that a raising signal handler has left for the next call.
#[derive(Debug)]
enum Kept {
    /// The next element, unless the loader moves.
    Element(Py<PyAny>),
    /// The exception: another thread had taken the elements after this one already, so it was handed over.
    Interrupt(PyErr),
}

/// Kept elements of a pass. The caller holds the loader, so no other thread does.
#[derive(Debug, Default)]
pub(super) struct Handed {
    kept: Mutex<Option<Kept>>,
    keeps: AtomicBool,
}

impl Handed {
    /// Whether something is kept.
    pub(super) fn keeps(&self) -> bool {
        self.keeps.load(Ordering::Relaxed)
    }

    /// Keeps element number `delivered`, which `interrupt` kept from being handed over. `false` if another thread has gone on with the
    /// next: then it has to be handed over now, and the exception is kept.
    pub(super) fn keep(
        &self,
        loader: &mut Loader<BoxIter<Item>>,
        (element, delivered): (Py<PyAny>, u64),
        interrupt: PyErr,
    ) -> bool {
        let is_withheld = loader.withhold(delivered);
        *self.kept.locked() = Some(if is_withheld { Kept::Element(element) } else { Kept::Interrupt(interrupt) });
        self.keeps.store(true, Ordering::Relaxed);
        is_withheld
    }

    /// The element that was kept, and how many are delivered with it; `None` if the loader has moved since.
    ///
    /// # Errors
    /// The exception that was kept.
    #[cold]
    pub(super) fn take(&self, loader: &mut Loader<BoxIter<Item>>) -> PyResult<Option<(Py<PyAny>, u64)>> {
        self.keeps.store(false, Ordering::Relaxed);
        match self.kept.locked().take() {
            Some(Kept::Interrupt(interrupt)) => Err(interrupt),
            Some(Kept::Element(element)) => Ok(loader.hand_over().then(|| (element, loader.delivered()))),
            None => Ok(None),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.kept.try_lock().as_deref() {
            Ok(Some(Kept::Element(element))) => visit.call(element),
            _ => Ok(()),
        }
    }

    pub(super) fn clear(&self) {
        drop(self.kept.locked().take());
    }
}
