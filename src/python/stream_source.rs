//! Streams written in Python: anything that can be iterated, with a state of its own or without.

use std::fmt;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;

use super::callable::Callable;
use super::error;
use super::interpreter::attach;
use super::item::Item;
use super::json;
use crate::cx::{Cx, StageId};
use crate::dataset::{DatasetIterator, IterDataset, Role, Stage};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// An object whose `__iter__` starts a new pass.
pub(crate) struct PythonStream {
    object: Callable,
    kind: String,
}

impl PythonStream {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let kind = object.get_type().fully_qualified_name()?.to_string();
        if !object.hasattr("__iter__")? {
            return Err(PyTypeError::new_err(format!("a stream has `__iter__`, and {kind} has not")));
        }
        if object.hasattr("__next__")? {
            let text = format!("an iterator can be read only once, and {kind} is one: give what it was made from");
            return Err(PyTypeError::new_err(text));
        }
        Ok(Self { object: Callable::of(object), kind })
    }

    /// The object that is read.
    pub(crate) fn object(&self) -> Callable {
        self.object.clone()
    }
}

impl Stage for PythonStream {
    fn name(&self) -> &'static str {
        "source"
    }
    fn params(&self) -> String {
        self.kind.clone()
    }
    fn role(&self) -> Role {
        Role::Source
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        Vec::new()
    }
}

impl IterDataset for PythonStream {
    type Item = Item;
    type Iter = PythonPass;

    fn iter(&self, _run: &Runtime) -> Result<PythonPass> {
        attach(|py| PythonPass::start(py, self.object.clone())).map_err(error::caught)
    }
}

impl fmt::Debug for PythonStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PythonStream({})", self.kind)
    }
}

/// A pass over a [`PythonStream`].
pub(crate) struct PythonPass {
    object: Callable,
    iterator: Py<PyIterator>,
    /// Whether it has `get_state` and `set_state`; without them a position is the number of elements before it.
    has_state: bool,
    given: u64,
}

impl PythonPass {
    fn start(py: Python<'_>, object: Callable) -> PyResult<Self> {
        let iterator = object.object().bind(py).try_iter()?;
        let has_state = iterator.hasattr("get_state")? && iterator.hasattr("set_state")?;
        Ok(Self { object, iterator: iterator.unbind(), has_state, given: 0 })
    }

    fn advance(&mut self) -> PyResult<Option<Item>> {
        attach(|py| self.iterator.bind(py).clone().next().map(|next| Item::of_result(next?)).transpose())
    }

    fn python_state(&self) -> PyResult<Json> {
        attach(|py| {
            let state = self.iterator.bind(py).call_method0("get_state")?;
            json::of_python(&state)
        })
    }

    fn restart(&mut self) -> PyResult<()> {
        *self = attach(|py| Self::start(py, self.object.clone()))?;
        Ok(())
    }
}

/// Position of a [`PythonPass`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PassState {
    /// Number of elements that were given: of a stream without a state of its own, which is read again up to there.
    Given(u64),
    /// State that its `get_state` returned.
    Python(Json),
    /// Its `get_state` failed, or returned what JSON cannot hold.
    #[serde(skip_deserializing, serialize_with = "refuse")]
    Failed(String),
}

fn refuse<S: Serializer>(text: &str, _: S) -> std::result::Result<S::Ok, S::Error> {
    Err(serde::ser::Error::custom(text))
}

impl DatasetIterator for PythonPass {
    type Item = Item;
    type State = PassState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<Item>> {
        let next = cx.timed(StageId(0), || self.advance());
        let item = next.map_err(|e| cx.blame(StageId(0), "source", error::caught(e)))?;
        self.given += u64::from(item.is_some());
        Ok(item)
    }

    fn state(&self) -> PassState {
        if !self.has_state {
            return PassState::Given(self.given);
        }
        self.python_state().map_or_else(|failed| PassState::Failed(failed.to_string()), PassState::Python)
    }

    fn restore(&mut self, state: PassState, _cx: &mut Cx) -> Result<()> {
        match state {
            PassState::Given(count) if !self.has_state => {
                self.restart().map_err(error::caught)?;
                for given in 0..count {
                    if self.advance().map_err(error::caught)?.is_none() {
                        let text = format!("the state is at element {count}, and the stream has {given}");
                        return Err(Error::state(text));
                    }
                }
                self.given = count;
                Ok(())
            }
            PassState::Python(state) if self.has_state => {
                let set = |py: Python<'_>| {
                    let state = py.import("json")?.call_method1("loads", (state.to_string(),))?;
                    self.iterator.bind(py).call_method1("set_state", (state,)).map(drop)
                };
                attach(set).map_err(error::caught)
            }
            PassState::Given(_) => Err(Error::state("the state is a number of elements, and the stream has states")),
            PassState::Python(_) => Err(Error::state("the state is the stream's own, and it has no `set_state`")),
            PassState::Failed(text) => Err(Error::state(text)),
        }
    }
}

impl fmt::Debug for PythonPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonPass")
    }
}
