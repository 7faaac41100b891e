//! Whether a training loop waits for its batches.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::report::as_dict;
use crate::consumer::{Metrics, Step, Timeline};
use crate::report::html::notebook;

/// Utilisation of a device: `str` returns a text, `as_dict` the numbers.
///
/// Shares are of the counted time, from 0 to 1. `utilisation` is AU of MLPerf Storage's benchmark. `stall` is the
/// share in which the device was idle. `input_bound_share` is the share of the loop in `next`, and `input_bound` is
/// its class in TensorFlow's profiler: `not`, `moderately` (from 5 %) or `highly` (from 20 %).
#[pyclass(name = "Metrics", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyMetrics(Metrics);

#[pymethods]
impl PyMetrics {
    /// Computes the metrics of the steps of a loop.
    ///
    /// Args:
    ///     steps (Sequence[tuple[float, float, float, float, int]]): For each step: the times at which its batch was
    ///         requested and arrived, and at which the device could start and was done, in seconds since the start of
    ///         the loop, and the number of samples.
    ///     wall (float): Duration of the loop in seconds.
    ///     exclude_first (int): Number of first steps that do not count.
    ///
    /// Returns:
    ///     The metrics; `None` if no step is left without the excluded steps.
    ///
    /// Raises:
    ///     ValueError: A time is negative.
    #[staticmethod]
    #[pyo3(signature = (steps, wall, exclude_first=1))]
    fn of(steps: Vec<(f64, f64, f64, f64, u64)>, wall: f64, exclude_first: usize) -> PyResult<Option<Self>> {
        let step = |(asked, got, ready, done, samples)| -> PyResult<Step> {
            Ok(Step { asked: time(asked)?, got: time(got)?, ready: time(ready)?, done: time(done)?, samples })
        };
        let steps = steps.into_iter().map(step).collect::<PyResult<Vec<_>>>()?;
        Ok(Metrics::of(&Timeline::new(steps, time(wall)?), exclude_first).map(Self))
    }

    /// Adds `relative_speed`: the speed as a share of the speed of another loop.
    ///
    /// Args:
    ///     resident (Metrics): The metrics of an equal loop over a batch that stays in memory.
    fn beside(&self, resident: &Self) -> Self {
        Self(self.0.clone().beside(&resident.0))
    }

    /// The meaning of the metrics, in a sentence.
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

    /// Returns the text for a notebook.
    fn _repr_html_(&self) -> String {
        notebook(&self.0.to_string())
    }

    /// Returns every number.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, &self.0)
    }
}

fn time(seconds: f64) -> PyResult<Duration> {
    let wrong = |_| PyValueError::new_err(format!("{seconds} is not a number of seconds since the start"));
    Duration::try_from_secs_f64(seconds).map_err(wrong)
}
