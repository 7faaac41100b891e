//! Stand-in for worker processes where there are none: what `mp_prefetch` asks of them is done in this one.

use pyo3::prelude::*;

use super::how::Setup;
use super::item::Item;
use super::iterator::PyDatasetIterator;
use super::pipeline::Pipeline;
use crate::dataset::BoxIter;
use crate::error::Result;
use crate::loader::LoaderBuilder;

/// Whether a loader is to have processes evaluate its pipeline.
#[derive(Debug)]
pub(crate) struct GivenWorkers(bool);

default_as!(GivenWorkers, Self(true));

impl<'a, 'py> FromPyObject<'a, 'py> for GivenWorkers {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self)
    }
}

impl GivenWorkers {
    pub(crate) fn start<'py>(
        self,
        object: &Bound<'py, PyAny>,
        streams: &Pipeline,
        setup: Setup,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        PyDatasetIterator::start(object, streams, setup.with_workers(self.0))
    }
}

/// There are none.
#[derive(Clone, Debug)]
pub(crate) enum Workers {}

impl Workers {
    pub(crate) fn of(_: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(None)
    }

    pub(crate) fn run(&self, _: LoaderBuilder<BoxIter<Item>>) -> Result<LoaderBuilder<BoxIter<Item>>> {
        match *self {}
    }
}
