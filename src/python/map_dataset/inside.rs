//! Making of datasets of random access, and reading at an index.

use std::ops::Bound as Limit;

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use super::{Keywords, PyMapDataset};
use crate::dataset::{BoxIter, BoxMap, MapDatasetExt, record_of};
use crate::error::Error;
use crate::python::batching::{Batching, Rest};
use crate::python::convert;
use crate::python::dataset::Dataset;
use crate::python::error::{self, OrRaise};
use crate::python::interpreter::detached;
use crate::python::item::Item;
use crate::python::iter_dataset::PyIterDataset;
use crate::python::pipeline::{Pipeline, over};
use crate::python::recipe::Recipe;

impl Dataset for PyMapDataset {
    fn with(pipeline: Pipeline, recipe: Recipe) -> Self {
        Self(pipeline, recipe)
    }

    fn pipeline(&self) -> &Pipeline {
        &self.0
    }
}

impl PyMapDataset {
    /// Makes the described source `name`: of files, or for `arrow` of a table in memory.
    pub(in crate::python) fn source_named(
        name: &str,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<Self> {
        #[cfg(feature = "columns")]
        if name == "arrow"
            && let Some(table) = crate::python::arrow::table(args, kwargs)?
        {
            return Self::new(args.py(), table.maps()?);
        }
        Self::read(name, args, kwargs, Pipeline::random_access)
    }

    /// Batches of `size` elements, stacked or made by `batch_fn`.
    pub(super) fn batched(
        &self,
        py: Python<'_>,
        size: usize,
        rest: Rest,
        batch_fn: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        match Batching::new(py, size, rest, batch_fn)? {
            Batching::Stacked(remainder) => Self::new(py, self.0.batch(size, remainder)),
            Batching::Made(remainder, function) => {
                Self::calling(py, self.0.batch_fn(size, remainder, function.clone()), function)
            }
            Batching::Padded(_) => {
                Err(Error::config("`remainder: pad` is for the batches of a stream: batch after to_iter_dataset()"))
                    .or_raise(py)
            }
        }
    }

    /// Returns the streams that are its elements.
    pub(in crate::python) fn made_streams(&self) -> Option<BoxMap<BoxIter<Item>>> {
        convert::chain(self.0.items(), PyIterDataset::from_item).prefix().cloned()
    }

    /// Returns `ds[i]`. Negative indices count from the end.
    pub(super) fn at<'py>(&self, py: Python<'py>, index: i64) -> PyResult<Bound<'py, PyAny>> {
        let len = self.0.len();
        let place = if index >= 0 { Some(index.unsigned_abs()) } else { len.checked_sub(index.unsigned_abs()) };
        let Some(place) = place.filter(|_| len > 0) else {
            return Err(PyIndexError::new_err(format!("index {index} of a dataset of {len} elements")));
        };
        let item = detached(py, || self.0.get(place));
        match item.map_err(|e| e.index(place)) {
            Ok(Some(item)) => item.into_python(py),
            Ok(None) => Ok(py.None().into_bound(py)),
            Err(failed) => {
                let exception = error::raised(py, &failed);
                error::annotate_record(py, &exception, &failed, record_of(&*self.0.stage(), place));
                Err(exception)
            }
        }
    }

    pub(super) fn sliced(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        let part = |name: &str| slice.getattr(name)?.extract::<Option<i64>>();
        let range = (
            part("start")?.map_or(Limit::Unbounded, Limit::Included),
            part("stop")?.map_or(Limit::Unbounded, Limit::Excluded),
        );
        let step = part("step")?.unwrap_or(1);
        Self::new(slice.py(), over!(&self.0, ds => ds.slice_step(range, step)))
    }
}

/// Returns the greatest number of elements that `transform` makes of one element: as given, or its attribute.
pub(super) fn max_fan_out(transform: &Bound<'_, PyAny>, given: Option<usize>) -> PyResult<usize> {
    match (given, transform.getattr_opt("max_fan_out")?) {
        (Some(given), _) => Ok(given),
        (None, Some(attribute)) => attribute.extract(),
        (None, None) => Err(PyTypeError::new_err("flat_map() of a MapDataset needs max_fan_out")),
    }
}
