//! Warnings of the core for Python's `logging`, under the name `gristmill`.
//!
//! They arise on any thread, and to log one there would be to wait for the interpreter, perhaps with a lock held for which its
//! owner waits. So they are kept until a call from Python, which has the interpreter, is about to return.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::fork::PerProcess;

/// Greatest number of kept warnings, for programs that never log them.
const MOST: usize = 100;

static WAITING: AtomicBool = AtomicBool::new(false);
static KEPT: PerProcess<Mutex<Vec<String>>> = PerProcess::new(Mutex::default);

/// Has warnings kept for Python.
pub(crate) fn listen() {
    crate::events::listen(keep);
}

fn keep(_: tracing::Level, text: &str) {
    let mut kept = KEPT.lock();
    if kept.len() < MOST {
        kept.push(text.to_owned());
        WAITING.store(true, Ordering::Release);
    }
}

/// Logs the kept warnings. An exception of a handler only ends the logging.
#[inline]
pub(crate) fn log(py: Python<'_>) {
    if WAITING.load(Ordering::Relaxed) {
        log_kept(py);
    }
}

#[cold]
fn log_kept(py: Python<'_>) {
    WAITING.store(false, Ordering::Release);
    let kept = std::mem::take(&mut *KEPT.lock());
    let logged = || {
        let logger = py.import("logging")?.call_method1("getLogger", ("gristmill",))?;
        kept.iter().try_for_each(|text| logger.call_method1("warning", ("%s", text)).map(drop))
    };
    if let Err(error) = logged() {
        error.write_unraisable(py, None);
    }
}
