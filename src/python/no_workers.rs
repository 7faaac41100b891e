//! Stand-in for worker processes where there are none: what `mp_prefetch` asks of them is done in this one.

use pyo3::prelude::*;

use super::item::Item;
use crate::dataset::BoxIter;
use crate::error::Result;
use crate::loader::LoaderBuilder;

/// There are none.
#[derive(Clone, Debug)]
pub(crate) enum Workers {}

impl Workers {
    pub(crate) fn of(_: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(None)
    }

    pub(crate) fn run(&self, _: LoaderBuilder<BoxIter<Item>>, _: usize) -> Result<LoaderBuilder<BoxIter<Item>>> {
        match *self {}
    }
}
