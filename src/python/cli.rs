//! The `gristmill` command, as the package's script runs it.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

use super::interpreter::detached;
use crate::cli::doctor::Packages;

/// Runs a command line, and returns the exit code.
///
/// Args:
///     arguments (Sequence[str]): The program's name and the arguments, as in `sys.argv`.
///     interpreter (str): The path of the Python interpreter of workers.
#[pyfunction]
pub(crate) fn cli(py: Python<'_>, arguments: Vec<OsString>, interpreter: OsString) -> u8 {
    const AGAIN: [&str; 2] = ["-c", "from gristmill_command import main; main()"];
    detached(py, || {
        crate::cli::own::set_interpreter(interpreter.clone(), &AGAIN);
        crate::cli::doctor::set_packages(packages);
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

/// Packages that share a process with this one, or whose versions matter to it.
const PACKAGES: [&str; 11] = [
    "gristmill",
    "numpy",
    "jax",
    "jaxlib",
    "torch",
    "tensorflow",
    "grain",
    "flax",
    "ray",
    "orbax-checkpoint",
    "pyarrow",
];

/// Lists the interpreter and its packages. The metadata is read, and no package is imported.
fn packages() -> Packages {
    let python = |py: Python<'_>| -> PyResult<Packages> {
        let metadata = py.import("importlib.metadata")?;
        let version = |name: &str| metadata.call_method1("version", (name,)).and_then(|version| version.extract()).ok();
        let versions = PACKAGES.iter().map(|name| ((*name).to_owned(), version(name))).collect();
        let group = [("group", "jax_plugins")].into_py_dict(py)?;
        let named = metadata.call_method("entry_points", (), Some(&group))?.try_iter()?;
        let mut plugins = named.map(|plugin| plugin?.getattr("name")?.extract()).collect::<PyResult<Vec<String>>>()?;
        // Packages by name.
        for package in metadata.call_method0("distributions")?.try_iter()? {
            let package = package?.getattr("metadata")?;
            let name: Option<String> = package.get_item("Name").and_then(|name| name.extract()).ok();
            plugins.extend(name.filter(|name| name == "libtpu" || name.contains("pjrt")));
        }
        plugins.sort_unstable();
        plugins.dedup();
        Ok(Packages {
            python: py.import("platform")?.call_method0("python_version")?.extract()?,
            versions,
            plugins,
            #[cfg(feature = "pjrt")]
            site_packages: py.import("site")?.call_method0("getsitepackages")?.extract()?,
        })
    };
    Python::attach(|py| python(py).unwrap_or_default())
}
