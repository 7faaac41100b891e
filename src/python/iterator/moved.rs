//! Moves and edits of a running pass.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::super::arguments;
use super::super::error::OrRaise;
use super::super::item::Item;
use super::PyDatasetIterator;
use crate::dataset::BoxIter;
use crate::declare::node::Node;
use crate::declare::values::Decode;
use crate::{Checkpoint, Edits, ErrorKind, Loader, Result};

impl PyDatasetIterator {
    /// Replaces `loader` by a pass over equal rows from `checkpoint` on. With other hosts the pass continues, or
    /// begins `anew` as they do.
    pub(super) fn replace(&self, loader: &mut Loader<BoxIter<Item>>, checkpoint: Checkpoint, anew: bool) -> Result<()> {
        let (part, deal) = (loader.part().cloned(), loader.deal().cloned().unwrap_or_default());
        let builder = self.how.builder(&self.dataset, self.workers.as_ref(), part, deal)?;
        let mut another = builder.edits(loader.edits().clone()).resume(checkpoint).build()?;
        another.take_guard(loader, anew);
        another.take_viewers(loader);
        self.around.begin_again();
        *loader = another;
        Ok(())
    }

    /// Moves the loader to a checkpoint; replaces it if its thread is busy.
    pub(super) fn moved(
        &self,
        loader: &mut Loader<BoxIter<Item>>,
        go: impl FnOnce(&mut Loader<BoxIter<Item>>) -> Result<()>,
    ) -> Result<()> {
        match go(loader) {
            Err(error) if error.kind() == ErrorKind::Worker => {
                let there = loader.state()?;
                self.replace(loader, there, false)
            }
            done => done,
        }
    }

    /// Adds an edit at batch `at`, or at the first batch that can change. Returns its batch.
    pub(super) fn add_edit(
        &self,
        py: Python<'_>,
        at: Option<u64>,
        numbers: [(&str, Option<u64>); 3],
        others: [(&str, Option<&Bound<'_, PyAny>>); 3],
    ) -> PyResult<u64> {
        self.check_thread()?;
        let entry = PyDict::new(py);
        entry.set_item("at", at.unwrap_or(0))?;
        for (name, number) in numbers {
            number.map_or(Ok(()), |number| entry.set_item(name, number))?;
        }
        for (name, value) in others {
            value.map_or(Ok(()), |value| entry.set_item(name, value))?;
        }
        let list = PyList::new(py, [entry])?;
        let mut node = Node::new(arguments::value(list.as_any(), 0)?, 0, 0);
        node.set_paths("edit".to_owned());
        let edit = Edits::decode(&node).or_raise(py)?;
        self.running(py, |loader| {
            let at = at.map_or_else(|| loader.first_edit(&edit), Ok)?;
            self.moved(loader, |loader| loader.edit(edit.all_at(at)))?;
            Ok(at)
        })?
        .or_raise(py)
    }
}
