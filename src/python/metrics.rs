//! Whether a training loop waits for its batches.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::report::as_dict;
use crate::consumer::{Metrics, Step, Timeline};
use crate::report::html::notebook;

#[doc = docs!(Metrics)]
#[pyclass(name = "Metrics", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyMetrics(Metrics);

#[pymethods]
impl PyMetrics {
    #[doc = docs!(Metrics.of)]
    #[staticmethod]
    #[pyo3(signature = (steps, wall, exclude_first=1))]
    fn of(steps: Vec<(f64, f64, f64, f64, u64)>, wall: f64, exclude_first: usize) -> PyResult<Option<Self>> {
        let step = |(asked, got, ready, done, samples)| -> PyResult<Step> {
            Ok(Step { asked: time(asked)?, got: time(got)?, ready: time(ready)?, done: time(done)?, samples })
        };
        let steps = steps.into_iter().map(step).collect::<PyResult<Vec<_>>>()?;
        Ok(Metrics::of(&Timeline::new(steps, time(wall)?), exclude_first).map(Self))
    }

    #[doc = docs!(Metrics.beside)]
    fn beside(&self, resident: &Self) -> Self {
        Self(self.0.clone().beside(&resident.0))
    }

    #[doc = docs!(Metrics.verdict)]
    #[getter]
    fn verdict(&self) -> String {
        self.0.verdict()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<gristmill.Metrics: {}>", self.0.verdict())
    }

    /// The same text in a notebook.
    fn _repr_html_(&self) -> String {
        notebook(&self.0.to_string())
    }

    #[doc = docs!(Metrics.as_dict)]
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, &self.0)
    }
}

fn time(seconds: f64) -> PyResult<Duration> {
    let wrong = |_| PyValueError::new_err(format!("{seconds} is no time since the start in seconds"));
    Duration::try_from_secs_f64(seconds).map_err(wrong)
}
