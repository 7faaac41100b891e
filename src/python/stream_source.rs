//! Streams written in Python: iterables, with or without a state.

use pyo3::exceptions::{PyTypeError, PyValueError};
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
use crate::dataset::{DatasetIterator, Describe, IterDataset, Node, Role, Stage};
use crate::error::{Error, Result};
use crate::exec::Runtime;

/// An object whose `__iter__` starts a new pass.
pub(crate) struct PythonStream {
    object: Callable,
    kind: String,
    /// Number of epochs that a pass reads, if the object has `set_epoch`.
    epochs: Option<u64>,
}

impl PythonStream {
    pub(crate) fn new(object: &Bound<'_, PyAny>, epochs: Option<u64>) -> PyResult<Self> {
        let kind = object.get_type().fully_qualified_name()?.to_string();
        if !object.hasattr("__iter__")? {
            return Err(PyTypeError::new_err(format!("a stream needs `__iter__`, and {kind} has none")));
        }
        if object.hasattr("__next__")? {
            let text =
                format!("an iterator can be read only once, and {kind} is an iterator: give the iterable that made it");
            return Err(PyTypeError::new_err(text));
        }
        if epochs == Some(0) {
            return Err(PyValueError::new_err("epochs is 0, and must be 1 or more"));
        }
        if epochs.is_some() && !object.hasattr("set_epoch")? {
            let text = format!(
                "epochs are for a stream with `set_epoch`, and {kind} has none: `repeat` reads it several times"
            );
            return Err(PyTypeError::new_err(text));
        }
        Ok(Self { object: Callable::of(object), kind, epochs })
    }

    /// The object that is read.
    pub(crate) fn object(&self) -> Callable {
        self.object.clone()
    }
}

impl Stage for PythonStream {
    fn node(&self) -> Node<'_> {
        Node { describe: self, ..Node::new("source", Role::Source) }
    }
    facts! { parents: Vec::new() }
}

impl Describe for PythonStream {
    fn params(&self) -> String {
        self.epochs.map_or_else(|| self.kind.clone(), |epochs| format!("{}, epochs={epochs}", self.kind))
    }
}

impl IterDataset for PythonStream {
    type Item = Item;
    type Iter = PythonPass;

    fn iter(&self, _run: &Runtime) -> Result<PythonPass> {
        let epoch = self.epochs.map(|count| Epoch { number: 0, last: count - 1 });
        attach(|py| PythonPass::start(py, self.object.clone(), epoch)).map_err(error::caught)
    }
}

debug_as!(PythonStream, |self, f| write!(f, "PythonStream({})", self.kind));

/// The epoch that a pass is in, and the last one.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    number: u64,
    last: u64,
}

/// Sets the epoch of an object, if it has several epochs.
fn set_epoch(py: Python<'_>, object: &Callable, epoch: Option<Epoch>) -> PyResult<()> {
    match epoch {
        Some(Epoch { number, .. }) => object.object().bind(py).call_method1("set_epoch", (number,)).map(drop),
        None => Ok(()),
    }
}

/// A pass over a [`PythonStream`].
pub(crate) struct PythonPass {
    object: Callable,
    iterator: Py<PyIterator>,
    /// Whether it has `get_state` and `set_state`; without them a position is the number of elements before it.
    has_state: bool,
    /// Whether an element of this epoch was asked for.
    has_begun: bool,
    /// Elements of this epoch that were given.
    given: u64,
    epoch: Option<Epoch>,
}

impl PythonPass {
    fn start(py: Python<'_>, object: Callable, epoch: Option<Epoch>) -> PyResult<Self> {
        set_epoch(py, &object, epoch)?;
        let iterator = object.object().bind(py).try_iter()?;
        let has_state = iterator.hasattr("get_state")? && iterator.hasattr("set_state")?;
        Ok(Self { object, iterator: iterator.unbind(), has_state, has_begun: false, given: 0, epoch })
    }

    /// Returns the next element of this epoch or of a later epoch.
    fn advance(&mut self) -> PyResult<Option<Item>> {
        attach(|py| {
            if !std::mem::replace(&mut self.has_begun, true) {
                // A generator function begins with its first element, and another pass may have set the epoch since.
                set_epoch(py, &self.object, self.epoch)?;
            }
            self.iterator.bind(py).clone().next().map(|next| Item::of_result(next?)).transpose()
        })
    }

    /// Returns the next element of this epoch or of a later epoch.
    fn advance_epochs(&mut self) -> PyResult<Option<Item>> {
        loop {
            let item = self.advance()?;
            match self.epoch {
                Some(Epoch { number, last }) if item.is_none() && number < last => self.restart(Some(number + 1))?,
                _ => return Ok(item),
            }
        }
    }

    fn python_state(&self) -> PyResult<Json> {
        attach(|py| {
            let state = self.iterator.bind(py).call_method0("get_state")?;
            json::of_python(&state)
        })
    }

    /// Begins an epoch, or the only one.
    fn restart(&mut self, number: Option<u64>) -> PyResult<()> {
        let epoch = self.epoch.map(|epoch| Epoch { number: number.unwrap_or(epoch.number), ..epoch });
        *self = attach(|py| Self::start(py, self.object.clone(), epoch))?;
        Ok(())
    }

    fn within(&self) -> PassState {
        if !self.has_state {
            return PassState::Given(self.given);
        }
        self.python_state().map_or_else(|failed| PassState::Failed(failed.to_string()), PassState::Python)
    }
}

/// Position of a [`PythonPass`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PassState {
    /// Number of delivered elements of a stream without a state. A resume reads up to this number again.
    Given(u64),
    /// State that its `get_state` returned.
    Python(Json),
    /// An epoch of several, and the position in it.
    Epoch {
        /// The epoch, from 0.
        epoch: u64,
        /// The position.
        within: Box<PassState>,
    },
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
        cx.begin_element();
        let next = cx.timed(StageId(0), || self.advance_epochs());
        let item = next.map_err(|e| cx.blame(StageId(0), "source", error::caught(e)))?;
        self.given += u64::from(item.is_some());
        Ok(item)
    }

    fn state(&self) -> PassState {
        match self.epoch {
            Some(Epoch { number, .. }) => PassState::Epoch { epoch: number, within: Box::new(self.within()) },
            None => self.within(),
        }
    }

    fn restore(&mut self, state: PassState, _cx: &mut Cx) -> Result<()> {
        match (state, self.epoch) {
            (PassState::Epoch { epoch, within }, Some(Epoch { last, .. })) => {
                if epoch > last {
                    return Err(Error::state(format!("the state is in epoch {epoch}, and the last one is {last}")));
                }
                self.restart(Some(epoch)).map_err(error::caught)?;
                self.go_to(*within)
            }
            (PassState::Epoch { .. }, None) => Err(Error::state("the state is in an epoch, and the stream has none")
                .help("give `epochs` to `source` as before")),
            (_, Some(_)) => Err(Error::state("the state has no epoch, but the stream has several epochs")
                .help("omit `epochs` of `source` as before")),
            (state, None) => self.go_to(state),
        }
    }
}

impl PythonPass {
    /// Goes to a position of this epoch.
    fn go_to(&mut self, state: PassState) -> Result<()> {
        match state {
            PassState::Given(count) if !self.has_state => {
                self.restart(None).map_err(error::caught)?;
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
            PassState::Python(_) => Err(Error::state("the state belongs to the stream, which has no `set_state`")),
            PassState::Epoch { .. } => Err(Error::state("the state has an epoch in an epoch")),
            PassState::Failed(text) => Err(Error::state(text)),
        }
    }
}

debug_as!(PythonPass, |self, f| f.write_str("PythonPass"));
