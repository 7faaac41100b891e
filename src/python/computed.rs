//! Datasets of random access that Python computes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::callable::Callable;
use super::error;
use super::interpreter::attach;
use super::item::Item;
use crate::cx::{Cx, StageId};
use crate::dataset::map::Many;
use crate::dataset::{Describe, MapDataset, Node, Role, Stage};
use crate::error::{Error, Result};

/// An object with `__len__` and `__getitem__`, which receives the indices of later epochs unchanged.
pub(crate) struct Computed {
    object: Callable,
    len: u64,
    kind: String,
    /// Whether every index has an element.
    dense: bool,
}

impl Computed {
    pub(crate) fn new(object: &Bound<'_, PyAny>, dense: bool) -> PyResult<Self> {
        let kind = object.get_type().fully_qualified_name()?.to_string();
        if !object.hasattr("__getitem__")? {
            let text = format!("a computed dataset needs `__len__` and `__getitem__`, and {kind} lacks them");
            return Err(PyTypeError::new_err(text));
        }
        Ok(Self { len: object.len()? as u64, object: Callable::of(object), kind, dense })
    }

    /// The object that is read.
    pub(crate) fn object(&self) -> Callable {
        self.object.clone()
    }
}

impl Stage for Computed {
    fn node(&self) -> Node<'_> {
        Node { describe: self, ..Node::new("computed", if self.dense { Role::Source } else { Role::MayDrop }) }
    }
    facts! { parents: Vec::new() }
}

impl Describe for Computed {
    fn params(&self) -> String {
        format!("{}, {} elements", self.kind, self.len)
    }
}

impl MapDataset for Computed {
    type Item = Item;

    fn len(&self) -> u64 {
        self.len
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<Item>> {
        let read = || {
            attach(|py| {
                let element = self.object.object().bind(py).get_item(index)?;
                (!element.is_none()).then(|| Item::of_result(element)).transpose()
            })
        };
        let element = cx.timed(StageId(0), read).map_err(error::caught);
        let element = element.and_then(|element| match element {
            None if self.dense => {
                Err(Error::data(format!("{} has no element {index}, but was declared dense", self.kind)))
            }
            element => Ok(element),
        });
        element.map_err(|e| cx.blame(StageId(0), "computed", e))
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<Item> {
        attach(|_| Many::one_by_one(indices, |index| self.get(index, cx)))
    }
}

debug_as!(Computed, |self, f| write!(f, "Computed({}, {} elements)", self.kind, self.len));
