//! Holders of the interpreter while a pipeline runs.
//!
//! A pass that calls Python functions on the consumer's thread keeps the interpreter, because attaching for each call
//! would cost more than a small function. Such a pass releases the interpreter while native stages run. All other
//! threads attach only for the duration of a Python call.

#![expect(unsafe_code, reason = "the C library of Python distinguishes interpreters")]

use std::cell::Cell;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::cx::clock;

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// Checks that this is the main interpreter of the process, to which all threads belong. Objects must not cross
/// interpreters.
///
/// # Errors
/// `ImportError` in another.
pub(crate) fn check_main(_: Python<'_>) -> PyResult<()> {
    // SAFETY: the interpreter is held, so that there is a current one.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "gristmill works only in the main interpreter of a process, and this is another interpreter: use processes",
        )),
    }
}

/// Wraps every thread of the crate. The interpreter then keeps a state for the thread, which otherwise costs
/// microseconds at each Python call.
pub(crate) fn around_thread(body: &mut (dyn FnMut() + Send)) {
    let inside = |py: Python<'_>| {
        // A thread without a name still runs.
        let _ = name_thread(py);
        py.detach(&mut *body);
    };
    if Python::try_attach(inside).is_none() {
        body();
    }
}

/// `threading.current_thread().name` is `gristmill_0`, `gristmill_1`, …: as with Grain, functions may count on the number.
fn name_thread(py: Python<'_>) -> PyResult<()> {
    let thread = std::thread::current();
    let Some(name) = thread.name() else { return Ok(()) };
    let current = py.import("threading")?.call_method0("current_thread")?;
    current.setattr("name", name.replace('-', "_"))
}

/// Sets whether this thread holds the interpreter, until it is dropped.
struct Held {
    before: bool,
}

impl Held {
    fn set(held: bool) -> Self {
        Self { before: HELD.replace(held) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(self.before);
    }
}

/// Does `work` with the interpreter held throughout.
pub(crate) fn held<T>(work: impl FnOnce() -> T) -> T {
    Python::attach(|_| {
        let _held = Held::set(true);
        work()
    })
}

/// Does `work`, a function's or a source's of the user, with the interpreter. The wait for it is no time of theirs.
pub(crate) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    clock::taking_lock(|has_it| {
        Python::attach(|py| {
            has_it();
            work(py)
        })
    })
}

/// Makes calls of Python functions with the interpreter taken once for all of them.
pub(crate) fn attached(calls: &mut dyn FnMut()) {
    attach(|_| calls());
}

/// Does `work` without the interpreter.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let _held = Held::set(false);
        work()
    })
}

/// Does native `work`: without the interpreter, if this thread holds it.
#[inline]
pub(crate) fn released<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if !HELD.get() { work() } else { Python::attach(|py| detached(py, work)) }
}
