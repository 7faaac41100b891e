//! `Deal` and `Cost`: how rows are dealt among parts.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::error::OrRaise;
use crate::error::Error;
use crate::part::{Balance, Cost, Deal};

#[doc = docs!(Cost)]
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

    #[doc = docs!(Cost.attention)]
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

    #[doc = docs!(Cost.column)]
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
    /// The same cost, read from one of two columns, or from the first of segment ids.
    fn read_from(py: Python<'_>, cost: Cost, segments: Option<String>, lengths: Option<String>) -> PyResult<Self> {
        match (segments, lengths) {
            (None, None) => Ok(cost),
            (Some(name), None) => Ok(cost.segments(name)),
            (None, Some(name)) => Ok(cost.lengths(name)),
            (Some(_), Some(_)) => Err(Error::config("costs are read from `segments` or from `lengths`, not from both")),
        }
        .map(Self)
        .or_raise(py)
    }
}

#[doc = docs!(Deal)]
#[pyclass(name = "Deal", module = "gristmill", frozen, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyDeal {
    balance: Balance,
    /// Whether it only computes what balance would gain.
    is_shadow: bool,
}

#[pymethods]
impl PyDeal {
    #[doc = docs!(Deal.balanced)]
    #[staticmethod]
    #[pyo3(signature = (cost, micro_steps=1))]
    fn balanced(cost: &PyCost, micro_steps: usize) -> Self {
        Self { balance: Balance::new(cost.0.clone()).micro(micro_steps), is_shadow: false }
    }

    #[doc = docs!(Deal.shadow)]
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
