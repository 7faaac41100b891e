//! The wait report.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use super::error::{OrRaise, raised};
use crate::report::{Family, Kind, Unit};
use crate::{Error, Report};

/// Report of the time of a run: `str` returns a text, `as_dict` its numbers.
#[pyclass(name = "Report", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyReport(pub(super) Report);

#[pymethods]
impl PyReport {
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<gristmill.Report: {}>", self.0.verdict.text)
    }

    /// Returns the ribbon and the text, for a notebook.
    fn _repr_html_(&self) -> String {
        self.0.html()
    }

    /// Returns a self-contained page of HTML: the events of the run, and the causes of the consumer's waits.
    ///
    /// Args:
    ///     path (str | PathLike[str] | None): A file to write the page to.
    #[pyo3(signature = (path=None))]
    fn to_html(&self, py: Python<'_>, path: Option<PathBuf>) -> PyResult<String> {
        let page = self.0.to_html();
        if let Some(path) = path {
            std::fs::write(&path, &page).map_err(|e| raised(py, &Error::io(e, path)))?;
        }
        Ok(page)
    }

    /// Returns the ribbon of the page: a picture of the run. It is empty if no element was delivered.
    fn to_svg(&self) -> String {
        self.0.to_svg()
    }

    /// Reads a recording of `loader(record=…)` or `gristmill run --record`. The run may still go on, or may have been
    /// killed: the report is of the last time that it was written.
    ///
    /// Args:
    ///     path (str | PathLike[str]): The recording.
    ///
    /// Raises:
    ///     DataError: The file is no recording, or is damaged. The message names the byte.
    ///     IoError: The file cannot be read.
    #[staticmethod]
    fn from_record(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Report::from_record(path)).map(Self).or_raise(py)
    }

    /// Returns every number of the report.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, &self.0)
    }

    /// Returns figures under flat and stable names, for dashboards: see `gristmill.metrics`. Notes with equal flat
    /// names are added.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = PyDict::new(py);
        self.0.flat_metrics().into_iter().try_for_each(|(path, value)| metrics.set_item(path, value))?;
        Ok(metrics)
    }
}

/// Lists the metrics: name, unit, whether the value only grows, label, and description.
#[pyfunction]
pub(super) fn _metric_families() -> Vec<(&'static str, &'static str, bool, Option<&'static str>, &'static str)> {
    let unit = |unit| match unit {
        Unit::Seconds => "s",
        Unit::Bytes => "By",
        _ => "1",
    };
    let families = Family::ALL.iter();
    families.map(|f| (f.name, unit(f.unit), f.kind == Kind::Counter, f.label, f.help)).collect()
}

/// Lists the metrics of a report: name, the value of the label, and the value.
#[pyfunction]
pub(super) fn _metric_values(report: &PyReport) -> Vec<(&'static str, Option<String>, f64)> {
    report.0.metrics().into_iter().map(|metric| (metric.family.name, metric.label, metric.value)).collect()
}

/// Converts `figures` to a dict by JSON.
pub(super) fn as_dict<'py>(py: Python<'py>, figures: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_string(figures).map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))?;
    py.import("json")?.call_method1("loads", (json,))
}
