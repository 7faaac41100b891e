//! Arguments of `mix`: datasets in a list or by name, and weights that may change.

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::arguments::{named, value};
use super::error::OrRaise;
use crate::spec::mixing::{MixOptions, Mixing};
use crate::spec::node::{Node, Tree};

/// Datasets of a mix, and their names if they have some.
pub(super) struct Parts<'py, T: PyClass> {
    pub(super) datasets: Vec<PyRef<'py, T>>,
    names: Option<Tree>,
}

impl<'py, T: PyClass> Parts<'py, T> {
    /// Reads a list of datasets, or a dict of names and datasets.
    pub(super) fn of(given: &Bound<'py, PyAny>) -> PyResult<Self> {
        let Ok(dict) = given.cast::<PyDict>() else {
            return Ok(Self { datasets: given.extract()?, names: None });
        };
        let names: Vec<String> = dict.keys().extract()?;
        let names = Tree::List(names.into_iter().map(|name| Node::new(Tree::Str(name), 0, 0)).collect());
        Ok(Self { datasets: dict.values().extract()?, names: Some(names) })
    }

    /// Reads the options of their mix.
    pub(super) fn mixing(
        &mut self,
        py: Python<'py>,
        weights: Option<&Bound<'py, PyAny>>,
        options: impl IntoIterator<Item = (&'static str, Tree)>,
    ) -> PyResult<Mixing> {
        let names = self.names.take().map(|names| ("names", names));
        let weights = weights.map(of_weights).transpose()?;
        let all: Vec<_> = options.into_iter().chain(names).chain(weights).collect();
        MixOptions::of(named(all), self.datasets.len()).or_raise(py)
    }
}

/// Reads weights: a list of numbers, a dict of names and numbers, or a schedule.
fn of_weights(given: &Bound<'_, PyAny>) -> PyResult<(&'static str, Tree)> {
    if given.is_instance_of::<PyDict>() {
        return Ok(("weights", value(given, 0)?));
    }
    let is_list = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
    let is_pairs = is_list
        && given.get_item(0).is_ok_and(|first| first.cast::<PyTuple>().is_ok() || first.cast::<PyList>().is_ok());
    if is_pairs {
        return of_weights(&given.py().import("gristmill._schedule")?.call_method1("schedule", (given,))?);
    }
    if given.hasattr("_arguments")? {
        return Ok(("schedule", value(&given.call_method0("_arguments")?, 0)?));
    }
    let weights: Vec<f64> = given.extract().map_err(|_| {
        let kind = given.get_type().name().map_or_else(|_| "another object".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "weights are a list of numbers, a dict of names and numbers, or a schedule, not {kind}"
        ))
    })?;
    Ok(("weights", Tree::List(weights.into_iter().map(|weight| Node::new(Tree::Float(weight), 0, 0)).collect())))
}
