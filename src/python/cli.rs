//! The `gristmill` command, as the package's script runs it.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::interpreter::detached;

/// Runs the command that `arguments` say, the first of which is the program's name, and returns the exit code.
/// `interpreter` runs Python; worker processes are this command again.
#[pyfunction]
pub(crate) fn cli(py: Python<'_>, arguments: Vec<OsString>, interpreter: OsString) -> u8 {
    const AGAIN: [&str; 2] = ["-c", "from gristmill._cli import main; main()"];
    detached(py, || {
        crate::cli::own::set_interpreter(interpreter.clone(), &AGAIN);
        #[cfg(all(feature = "workers", target_os = "linux"))]
        {
            // Does not return in a worker.
            crate::workers::init();
            crate::workers::set_worker_command(interpreter, AGAIN);
        }
        crate::cli::main(arguments)
    })
}
