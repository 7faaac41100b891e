//! Sizes in bytes, as users write them.

use pyo3::prelude::*;

use crate::units::parse_amount;

/// Parses text such as `2GiB`; `None` if it is no size.
#[pyfunction]
pub(crate) fn _parse_amount(text: &str) -> Option<f64> {
    parse_amount(text)
}
