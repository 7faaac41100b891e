//! `MapDataset`: random access.

mod inside;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PySlice, PyTuple};

use super::arguments;
use super::callable::Callable;
use super::computed::Computed;
use super::convert;
use super::error::OrRaise;
use super::item::Item;
use super::iter_dataset::PyIterDataset;
use super::iterator::{How, PyDatasetIterator};
use super::maps::{Maps, Several, over};
use super::numbers::Numbers;
use super::recipe::{self, Recipe};
use super::source::{PythonSource, Selection};
use super::streams::Streams;
use crate::dataset::map::{Concatenate, Mix, Range, Select, Source, ZipAll};
use crate::dataset::{INFINITE, MapDataset};
use crate::spec::by_name;
use crate::spec::chain::Border;

/// A dataset of random access: `ds[i]`, `len(ds)`, shuffled and sharded by index, evaluated in any order.
#[pyclass(name = "MapDataset", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyMapDataset(Maps, Recipe);

type Keywords<'py> = Bound<'py, PyDict>;

#[pymethods]
impl PyMapDataset {
    /// Whole numbers, as Python's `range`.
    #[staticmethod]
    #[pyo3(signature = (start, stop=None, step=1))]
    fn range(py: Python<'_>, start: i64, stop: Option<i64>, step: i64) -> PyResult<Self> {
        let (start, stop) = stop.map_or((0, start), |stop| (start, stop));
        let range = Range::with_step(start, stop, step).or_raise(py)?;
        Self::new(py, Maps::Items(Numbers(range).boxed()))
    }

    /// The records of anything with `__len__` and `__getitem__`.
    #[staticmethod]
    fn source(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = PythonSource::new(source)?;
        let object = source.object();
        Self::calling(py, Maps::Items(Source::new(source).boxed()), object)
    }

    /// The elements that anything with `__len__` and `__getitem__` computes for an index.
    #[staticmethod]
    #[pyo3(signature = (source, *, dense=false))]
    fn computed(py: Python<'_>, source: &Bound<'_, PyAny>, dense: bool) -> PyResult<Self> {
        let source = Computed::new(source, dense)?;
        let object = source.object();
        Self::calling(py, Maps::Items(source.boxed()), object)
    }

    /// Records of JSON Lines files.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn jsonl(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("jsonl", args, kwargs)
    }

    /// Rows of Arrow's files, or of a table that exports itself through Arrow's C interface: pyarrow's, Polars', DuckDB's.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn arrow(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        #[cfg(any(feature = "arrow", feature = "parquet"))]
        if let Some(table) = super::arrow::table(args, kwargs)? {
            let rows = Source::new(super::arrow::Rows::of(&table)?).boxed();
            return Self::new(args.py(), Maps::Elements(rows, crate::spec::chain::Context::unknown()));
        }
        Self::source_named("arrow", args, kwargs)
    }

    /// Lines of text files.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn lines(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("lines", args, kwargs)
    }

    /// Records of CSV files that are not compressed.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn csv(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("csv", args, kwargs)
    }

    /// Rows of Parquet files.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn parquet(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("parquet", args, kwargs)
    }

    /// Records of ArrayRecord files.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn array_record(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::records_named("array_record", args, kwargs)
    }

    /// Records of TFRecord files that are not compressed.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn tfrecord(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::records_named("tfrecord", args, kwargs)
    }

    /// Records of Bagz files.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn bagz(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::records_named("bagz", args, kwargs)
    }

    /// Sequences or documents of Megatron's indexed datasets.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn megatron(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("megatron", args, kwargs)
    }

    /// Samples of WebDataset shards that are not compressed.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn webdataset(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("webdataset", args, kwargs)
    }

    /// Samples of MDS folders.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn mds(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("mds", args, kwargs)
    }

    /// Arrays of `.npz` archives, or rows of them.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn npz(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("npz", args, kwargs)
    }

    /// Tensors of safetensors files, or rows of them.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn safetensors(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("safetensors", args, kwargs)
    }

    /// Rows of `.npy` files, along their first dimension.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn npy(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("npy", args, kwargs)
    }

    /// Files of token ids, one crop after the other.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn crops(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("crops", args, kwargs)
    }

    /// Files of token ids, crops that start anywhere.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn random_crops(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("random_crops", args, kwargs)
    }

    /// Elements of several datasets in proportion to the weights.
    #[staticmethod]
    #[pyo3(signature = (datasets, weights=None))]
    fn mix(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, weights: Option<Vec<f64>>) -> PyResult<Self> {
        let weights = weights.unwrap_or_else(|| vec![1.0; datasets.len()]);
        let maps = match Self::several(&datasets) {
            Several::Elements(parts, context) => Maps::Elements(Mix::new(parts).weights(weights).boxed(), context),
            Several::Items(parts) => Maps::Items(Mix::new(parts).weights(weights).boxed()),
        };
        Self::over_all(py, maps, datasets)
    }

    /// One dataset behind the other.
    #[staticmethod]
    fn concatenate(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let maps = match Self::several(&datasets) {
            Several::Elements(parts, context) => Maps::Elements(Concatenate::new(parts).boxed(), context),
            Several::Items(parts) => Maps::Items(Concatenate::new(parts).boxed()),
        };
        Self::over_all(py, maps, datasets)
    }

    /// Tuples of the elements of datasets of one length.
    #[staticmethod]
    fn zip(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let zipped = ZipAll::new(datasets.iter().map(|ds| ds.0.items()).collect());
        let maps = Maps::Items(convert::map(zipped, |items| Ok(Item::Tuple(items))));
        Self::over_all(py, maps, datasets)
    }

    /// Elements of several datasets in an order of one's own.
    #[staticmethod]
    fn select_from_datasets(
        py: Python<'_>,
        datasets: Vec<PyRef<'_, Self>>,
        selection_map: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let order = Selection::new(selection_map)?;
        let maps = match Self::several(&datasets) {
            Several::Elements(parts, context) => Maps::Elements(Select::new(parts, order).boxed(), context),
            Several::Items(parts) => Maps::Items(Select::new(parts, order).boxed()),
        };
        Self::over_all(py, maps, datasets)
    }

    /// The seed from which random stages behind it derive theirs.
    fn seed(&self, py: Python<'_>, seed: u32) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.seed(seed)))
    }

    /// Random order, another in every epoch, in constant memory.
    #[pyo3(signature = (seed=None))]
    fn shuffle(&self, py: Python<'_>, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.shuffle(seed)))
    }

    /// Random order within windows.
    #[pyo3(signature = (window_size, seed=None))]
    fn window_shuffle(&self, py: Python<'_>, window_size: u64, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.window_shuffle(window_size, seed)))
    }

    /// The elements of a slice: `ds.slice(slice(1, None, 2))` is `ds[1::2]`.
    fn slice(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        self.sliced(slice)
    }

    /// Every `count`-th element from `index` on.
    fn shard(&self, py: Python<'_>, index: u64, count: u64) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.shard(index, count)))
    }

    /// The elements at these indices, in that order.
    fn select_indices(&self, py: Python<'_>, indices: Vec<u64>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.select_indices(indices)))
    }

    /// Several epochs as one, or epochs without end.
    #[pyo3(signature = (num_epochs=None, *, reseed_each_epoch=true))]
    fn repeat(&self, py: Python<'_>, num_epochs: Option<u64>, reseed_each_epoch: bool) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.repeat(num_epochs).reseed_each_epoch(reseed_each_epoch)))
    }

    /// Applies a function to every element.
    fn map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map")?;
        Self::calling(py, self.0.map(function.clone()), function)
    }

    /// Applies a function to every index and its element.
    fn map_with_index(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map_with_index")?;
        Self::calling(py, self.0.map_with_index(function.clone()), function)
    }

    /// Applies a function to every element and a `numpy.random.Generator` of its own.
    #[pyo3(signature = (transform, *, seed=None))]
    fn random_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, seed: Option<u32>) -> PyResult<Self> {
        let function = Callable::new(transform, "random_map")?;
        Self::calling(py, self.0.random_map(function.clone(), seed), function)
    }

    /// Keeps the elements of which a function, or a condition on a column, holds.
    #[pyo3(signature = (*args, **kwargs))]
    fn filter(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        match super::function_argument("filter", args, kwargs)? {
            Some(function) => Self::calling(args.py(), self.0.filter(function.clone()), function),
            None => self.native("filter", args, kwargs),
        }
    }

    /// Replaces every element by what a function makes of it, `max_fan_out` elements at most.
    #[pyo3(signature = (transform, max_fan_out=None))]
    fn flat_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, max_fan_out: Option<usize>) -> PyResult<Self> {
        let max_fan_out = match (max_fan_out, transform.getattr_opt("max_fan_out")?) {
            (Some(given), _) => given,
            (None, Some(attribute)) => attribute.extract()?,
            (None, None) => return Err(PyTypeError::new_err("flat_map() of a MapDataset needs max_fan_out")),
        };
        let function = Callable::new(transform, "flat_map")?;
        Self::calling(py, self.0.flat_map(max_fan_out, function.clone()), function)
    }

    /// Empty slots in place of elements that are `None`.
    fn drop_none(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.drop_none())
    }

    /// `None` in place of every empty slot: an element for each index.
    fn slots(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.slots())
    }

    /// Stacks consecutive elements into batches.
    #[pyo3(signature = (batch_size, drop_remainder=false, batch_fn=None))]
    fn batch(
        &self,
        py: Python<'_>,
        batch_size: usize,
        drop_remainder: bool,
        batch_fn: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let remainder = arguments::remainder(drop_remainder);
        let Some(function) = batch_fn else {
            return Self::new(py, over!(&self.0, ds => ds.batch_with(batch_size, remainder)));
        };
        let function = Callable::new(function, "batch")?;
        let called = function.clone();
        let make = move |items| called.batch(items);
        Self::calling(py, Maps::Items(self.0.items().batch_with_fn(batch_size, remainder, make).boxed()), function)
    }

    /// Text to token ids.
    #[pyo3(signature = (*args, **kwargs))]
    fn tokenise(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("tokenise", args, kwargs)
    }

    /// Only these columns.
    #[pyo3(signature = (*args, **kwargs))]
    fn select_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("select_columns", args, kwargs)
    }

    /// All but these columns.
    #[pyo3(signature = (*args, **kwargs))]
    fn drop_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("drop_columns", args, kwargs)
    }

    /// Records of bytes as the features of the `tf.train.Example` that they are.
    #[pyo3(signature = (*args, **kwargs))]
    fn parse_example(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("parse_example", args, kwargs)
    }

    /// The same of a `tf.train.SequenceExample`.
    #[pyo3(signature = (*args, **kwargs))]
    fn parse_sequence_example(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("parse_sequence_example", args, kwargs)
    }

    /// Other names for columns: `rename(text="document")`.
    #[pyo3(signature = (*args, **kwargs))]
    fn rename(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("rename", args, kwargs)
    }

    /// One epoch as a stream.
    fn to_iter_dataset(&self, py: Python<'_>) -> PyResult<PyIterDataset> {
        PyIterDataset::new(py, Streams::of(&self.0, Border::default()))
    }

    /// One epoch as a stream, saying what becomes of bad records and when a filter drops too much.
    #[pyo3(signature = (**kwargs))]
    fn to_iter(&self, py: Python<'_>, kwargs: Option<&Keywords<'_>>) -> PyResult<PyIterDataset> {
        let arguments = arguments::tree("to_iter", &PyTuple::empty(py), kwargs)?;
        PyIterDataset::new(py, Streams::of(&self.0, by_name::border(arguments).or_raise(py)?))
    }

    /// The elements of worker processes: all that is in front of this is evaluated there.
    #[pyo3(signature = (options=None, worker_init_fn=None, **kwargs))]
    fn mp_prefetch(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
        worker_init_fn: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<PyIterDataset> {
        super::check_workers(py, options, worker_init_fn, kwargs)?;
        PyIterDataset::new(py, Streams::of(&self.0, Border::default()).cut())
    }

    /// Starts a pass over one epoch.
    #[pyo3(signature = (*, threads=0, buffer=2, writable=false, workers=true))]
    fn loader<'py>(
        slf: &Bound<'py, Self>,
        threads: usize,
        buffer: usize,
        writable: bool,
        workers: bool,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        let streams = Streams::of(&slf.get().0, Border::default());
        PyDatasetIterator::start(slf.as_any(), &streams, How { threads, buffer, writable, workers })
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        Self::loader(slf, 0, 2, false, true)
    }

    fn __len__(&self) -> PyResult<usize> {
        usize::try_from(self.0.len().min(INFINITE)).map_err(|e| PyValueError::new_err(e.to_string()))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match index.cast::<PySlice>() {
            // By the method, which keeps the recipe.
            Ok(slice) => slf.call_method1("slice", (slice,)),
            Err(_) => slf.get().at(slf.py(), index.extract()?),
        }
    }

    /// How it was made.
    #[getter]
    fn _recipe(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.1.get(py)
    }

    fn _record(&self, recipe: &Bound<'_, PyAny>) {
        self.1.set(recipe);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.1.traverse(&visit)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        recipe::reduce(slf.as_any())
    }

    fn __repr__(&self) -> String {
        format!("<gristmill.MapDataset {}>", crate::dataset::label(self.0.stage()))
    }
}
