//! `Deal` and `Cost`: how rows are dealt among parts.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::error::OrRaise;
use crate::error::Error;
use crate::part::{Balance, Cost, Deal};

/// Cost of a row of a batch: `per_token` for each token, and `per_square` times the sum of the squared lengths of
/// its sequences.
///
/// Lengths are read from the column `segments` or `lengths`. By default, they are read from the first column whose
/// name ends in `segment_ids` or `segmentation`, which packing writes; the report names the column. Padding costs
/// nothing. The unit is free, because only ratios matter.
#[pyclass(name = "Cost", module = "gristmill", frozen, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyCost(Cost);

#[pymethods]
impl PyCost {
    #[new]
    #[pyo3(signature = (per_token, per_square=0, window=None, segments=None, lengths=None))]
    fn new(
        py: Python<'_>,
        per_token: u64,
        per_square: u64,
        window: Option<usize>,
        segments: Option<String>,
        lengths: Option<String>,
    ) -> PyResult<Self> {
        let cost = Cost::new(per_token, per_square);
        Self::read_from(py, window.map_or(cost.clone(), |window| cost.window(window)), segments, lengths)
    }

    /// Cost of a layer of a transformer, in `d_model` floating-point operations of its forward pass: 24 · `d_model` for
    /// each token, and 2 times the squared lengths with causal attention, 4 times without.
    ///
    /// Args:
    ///     d_model (int): The width of the model.
    ///     window (int | None): Number of tokens that a token attends to on a side, including itself; the whole
    ///         sequence by default.
    ///     causal (bool): Whether a token attends only to itself and earlier tokens.
    ///     segments (str | None): A column of segment ids, as for `Cost`.
    ///     lengths (str | None): A column of lengths, as for `Cost`.
    ///
    /// Raises:
    ///     ConfigError: Both columns are given.
    #[staticmethod]
    #[pyo3(signature = (d_model, *, window=None, causal=true, segments=None, lengths=None))]
    fn attention(
        py: Python<'_>,
        d_model: usize,
        window: Option<usize>,
        causal: bool,
        segments: Option<String>,
        lengths: Option<String>,
    ) -> PyResult<Self> {
        Self::read_from(py, Cost::attention(d_model, window, causal), segments, lengths)
    }

    /// Cost from a column with an integer for each row: patches of images, frames of sound.
    ///
    /// Args:
    ///     name (str): The column.
    #[staticmethod]
    fn column(name: String) -> Self {
        Self(Cost::column(name))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type().into_any(), slf.get().0.parts().into_pyobject(slf.py())?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("gristmill.Cost{}", self.0.parts().into_pyobject(py)?.repr()?))
    }
}

impl PyCost {
    /// Reads the cost from one of two columns, or from the first column of segment ids.
    fn read_from(py: Python<'_>, cost: Cost, segments: Option<String>, lengths: Option<String>) -> PyResult<Self> {
        match (segments, lengths) {
            (None, None) => Ok(cost),
            (Some(name), None) => Ok(cost.segments(name)),
            (None, Some(name)) => Ok(cost.lengths(name)),
            (Some(_), Some(_)) => Err(Error::config("give `segments` or `lengths`, not both")),
        }
        .map(Self)
        .or_raise(py)
    }
}

/// Assignment of the rows of every global batch to equal parts, by cost.
///
/// The deal changes neither batches nor states.
#[pyclass(name = "Deal", module = "gristmill", frozen, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDeal {
    balance: Balance,
    /// Whether it only computes what balance would gain.
    is_shadow: bool,
}

#[pymethods]
impl PyDeal {
    /// Balances cost over ranks, in each micro-step as evenly as possible. Heavy rows are in the first micro-steps,
    /// light rows in the last.
    ///
    /// Args:
    ///     cost (Cost): The cost of a row.
    ///     micro_steps (int): Number of consecutive steps into which each rank cuts its rows.
    #[staticmethod]
    #[pyo3(signature = (cost, micro_steps=1))]
    fn balanced(cost: &PyCost, micro_steps: usize) -> Self {
        Self { balance: Balance::new(cost.0.clone()).micro(micro_steps), is_shadow: false }
    }

    /// Assigns consecutive rows, and reports the gain of a balanced deal.
    ///
    /// Args:
    ///     cost (Cost): The cost of a row.
    ///     micro_steps (int): Number of consecutive steps into which each rank cuts its rows.
    #[staticmethod]
    #[pyo3(signature = (cost, micro_steps=1))]
    fn shadow(cost: &PyCost, micro_steps: usize) -> Self {
        Self { balance: Balance::new(cost.0.clone()).micro(micro_steps), is_shadow: true }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let this = slf.get();
        Ok((slf.get_type().getattr(this.name())?, this.arguments(slf.py())?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("gristmill.Deal.{}{}", self.name(), self.arguments(py)?.repr()?))
    }
}

impl PyDeal {
    /// The method that makes it.
    fn name(&self) -> &'static str {
        if self.is_shadow { "shadow" } else { "balanced" }
    }

    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (PyCost(self.balance.cost.clone()), self.balance.micro).into_pyobject(py)
    }
}

/// A deal as it is given: a `Deal`, or `"even"`.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenDeal(pub(crate) Deal);

impl<'a, 'py> FromPyObject<'a, 'py> for GivenDeal {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(deal) = given.cast::<PyDeal>() {
            let PyDeal { balance, is_shadow } = deal.get().clone();
            return Ok(Self(if is_shadow { Deal::Shadow(balance) } else { Deal::Balanced(balance) }));
        }
        match given.cast::<PyString>() {
            Ok(text) if text.to_str()? == "even" => Ok(Self::default()),
            Ok(text) if text.to_str()? == "lanes" => Ok(Self(Deal::Lanes)),
            _ => Err(PyTypeError::new_err(
                "a deal is \"even\", \"lanes\", gristmill.Deal.balanced(cost) or gristmill.Deal.shadow(cost)",
            )),
        }
    }
}
