//! The `gristmill` command, as the package's script runs it.

use std::ffi::OsString;

use pyo3::prelude::*;

use super::interpreter::detached;

#[doc = docs!(cli)]
#[pyfunction]
pub(crate) fn cli(py: Python<'_>, arguments: Vec<OsString>, interpreter: OsString) -> u8 {
    const AGAIN: [&str; 2] = ["-c", "from gristmill_command import main; main()"];
    detached(py, || {
        crate::cli::own::set_interpreter(interpreter.clone(), &AGAIN);
        #[cfg(all(feature = "workers", target_os = "linux"))]
        {
            // Does not return in a worker.
            crate::workers::init();
            crate::workers::set_worker_command(interpreter, AGAIN);
            crate::cli::elsewhere::set_engine(super::far::of_command);
        }
        crate::cli::main(arguments)
    })
}
