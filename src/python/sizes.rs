//! Sizes in bytes, as users write them.

use pyo3::prelude::*;

use crate::exec::MOST_THREADS;
use crate::units::{LEAST_BUDGET, parse_amount};

/// Parses text such as `2GiB`; `None` if it is no size.
#[pyfunction]
pub(crate) fn _parse_amount(text: &str) -> Option<f64> {
    parse_amount(text)
}

/// Adds what `gristmill._options` checks numbers by.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_parse_amount, module)?)?;
    module.add("_MOST_WORKERS", MOST_THREADS)?;
    module.add("_LEAST_BUDGET", LEAST_BUDGET)
}
