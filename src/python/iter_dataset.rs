//! `IterDataset`: a stream.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyTuple};

use super::arguments;
use super::callable::Callable;
use super::convert;
use super::error::OrRaise;
use super::interpreter::detached;
use super::item::Item;
use super::iterator::{How, PyDatasetIterator};
use super::map_dataset::PyMapDataset;
use super::recipe::{self, Recipe};
use super::stream_source::PythonStream;
use super::streams::{Streams, behind};
use crate::dataset::iter::{BadRecords, ZipLength, interleave, interleave_from, mix};
use crate::dataset::{BoxIter, IterDataset};
use crate::spec::Pipeline;
use crate::spec::chain::Chain;

/// A stream: read in order, small in state. Who evaluates it is chosen last, by `loader`, and changes no element.
#[pyclass(name = "IterDataset", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyIterDataset(Streams, Recipe);

type Keywords<'py> = Bound<'py, PyDict>;

impl PyIterDataset {
    fn of(streams: Streams) -> Self {
        Self(streams, Recipe::default())
    }

    /// The stream that an item is: what a function makes for `interleave`.
    pub(super) fn from_item(item: Item) -> crate::Result<BoxIter<Item>> {
        let stream = |py: Python<'_>| {
            let made = item.into_python(py)?.cast_into::<Self>()?;
            Ok(convert::keeping(made.get().0.dataset(), made.unbind().into_any()))
        };
        Python::attach(stream).map_err(super::error::caught)
    }

    pub(super) fn new(py: Python<'_>, streams: Streams) -> PyResult<Self> {
        Ok(Self(streams.checked(py)?, Recipe::default()))
    }

    /// What calls a Python function.
    fn calling(py: Python<'_>, streams: Streams, function: Callable) -> PyResult<Self> {
        Ok(Self(streams.checked(py)?, Recipe::new(vec![function], Vec::new())))
    }

    /// What is made of several.
    fn over_all(py: Python<'_>, streams: Streams, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts = parts.into_iter().map(|part| Py::from(part).into_any()).collect();
        Ok(Self(streams.checked(py)?, Recipe::new(Vec::new(), parts)))
    }

    /// What a loader runs.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "only what crosses to or from workers needs it")
    )]
    pub(super) fn dataset(&self) -> BoxIter<Item> {
        self.0.dataset()
    }

    fn source_named(name: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        detached(py, || Streams::source(name, arguments)).or_raise(py).map(Self::of)
    }

    fn native(&self, name: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        detached(py, || self.0.native(name, arguments)).or_raise(py).map(Self::of)
    }
}

#[pymethods]
impl PyIterDataset {
    /// The pipeline of a file in YAML, TOML or JSON.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        detached(py, || Ok(Streams::native_stream(Pipeline::from_file(path)?.build()?))).or_raise(py).map(Self::of)
    }

    /// Records of JSON Lines files in order, compressed or not.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn jsonl(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("jsonl", args, kwargs)
    }

    /// Lines of text files in order, compressed or not.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn lines(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("lines", args, kwargs)
    }

    /// Records of CSV files in order, compressed or not.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn csv(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("csv", args, kwargs)
    }

    /// Records of TFRecord files in order, compressed or not.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn tfrecord(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let named = arguments::has_fields(kwargs)?;
        let Self(streams, recipe) = Self::source_named("tfrecord", args, kwargs)?;
        Ok(Self(if named { streams } else { streams.bytes() }, recipe))
    }

    /// Samples of WebDataset shards in order, compressed or not.
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs))]
    fn webdataset(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("webdataset", args, kwargs)
    }

    /// A stream written in Python: what each `iter(source)` yields.
    #[staticmethod]
    fn source(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = PythonStream::new(source)?;
        let object = source.object();
        Self::calling(py, Streams::Items(Chain::Iter(source.boxed())), object)
    }

    /// Tuples of one element of each of several streams.
    #[staticmethod]
    #[pyo3(signature = (datasets, *, strict=true))]
    fn zip(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, strict: bool) -> PyResult<Self> {
        let streams: Vec<_> = datasets.iter().map(|ds| &ds.0).collect();
        let zipped = Streams::zip(&streams, if strict { ZipLength::Equal } else { ZipLength::Shortest });
        Self::over_all(py, zipped, datasets)
    }

    /// Elements of several streams in proportion to the weights, until one ends.
    #[staticmethod]
    #[pyo3(signature = (datasets, weights=None))]
    fn mix(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, weights: Option<Vec<f64>>) -> PyResult<Self> {
        let weights = weights.unwrap_or_else(|| vec![1.0; datasets.len()]);
        let mixed = mix(datasets.iter().map(|ds| ds.0.dataset())).weights(weights);
        Self::over_all(py, Streams::Items(Chain::Iter(mixed.boxed())), datasets)
    }

    /// One element of each of `cycle_length` streams in turn.
    #[staticmethod]
    fn interleave(py: Python<'_>, datasets: &Bound<'_, PyAny>, cycle_length: usize) -> PyResult<Self> {
        if let Ok(made) = datasets.cast::<PyMapDataset>() {
            let lanes = interleave_from(made.get().made_streams(), cycle_length).boxed();
            return Self::new(py, Streams::Items(Chain::Iter(lanes)));
        }
        let datasets: Vec<PyRef<'_, Self>> = datasets.extract()?;
        let streams: Vec<_> = datasets.iter().map(|ds| ds.0.dataset()).collect();
        let streams = Streams::Items(Chain::Iter(interleave(streams, cycle_length).boxed()));
        Self::over_all(py, streams, datasets)
    }

    /// The seed from which random stages behind it derive theirs.
    fn seed(&self, py: Python<'_>, seed: u32) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.seed(seed)))
    }

    /// Random order within windows.
    #[pyo3(signature = (window_size, seed=None))]
    fn window_shuffle(&self, py: Python<'_>, window_size: usize, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.window_shuffle(window_size, seed)))
    }

    /// The whole stream several times, or without end.
    #[pyo3(signature = (num_epochs=None))]
    fn repeat(&self, py: Python<'_>, num_epochs: Option<u64>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.repeat(num_epochs)))
    }

    /// The first `count` elements.
    fn limit(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.limit(count)))
    }

    /// Leaves out records that the stages before it cannot use.
    #[pyo3(signature = (limit=None, consecutive=None))]
    fn skip_bad_records(&self, py: Python<'_>, limit: Option<u64>, consecutive: Option<u64>) -> PyResult<Self> {
        Self::new(py, self.0.skip_bad_records(BadRecords::Skip { limit, consecutive }))
    }

    /// Keeps every element in memory for the next epoch.
    fn cache(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.cache()))
    }

    /// Applies a function to every element.
    fn map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map")?;
        Self::calling(py, self.0.map(function.clone()), function)
    }

    /// Applies a function to every element and its number in this stream.
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
        let (thresholds, kwargs) = arguments::thresholds(kwargs)?;
        match super::function_argument("filter", args, kwargs.as_ref())? {
            Some(function) => Self::calling(args.py(), self.0.filter(function.clone(), thresholds), function),
            None if thresholds.is_some() => Err(PyTypeError::new_err(
                "filter() takes warn and raise with a function; those of a condition are arguments of to_iter()",
            )),
            None => self.native("filter", args, kwargs.as_ref()),
        }
    }

    /// All elements but those that are `None`.
    fn drop_none(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.drop_none())
    }

    /// Replaces every element by what a function makes of it: none, one or many.
    fn flat_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "flat_map")?;
        Self::calling(py, self.0.flat_map(function.clone()), function)
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
        let Some(function) = batch_fn else { return Self::new(py, self.0.batch(batch_size, remainder)) };
        let function = Callable::new(function, "batch")?;
        Self::calling(py, self.0.batch_fn(batch_size, remainder, function.clone()), function)
    }

    /// Cuts batches anew.
    #[pyo3(signature = (*args, **kwargs))]
    fn rebatch(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("rebatch", args, kwargs)
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

    /// Sequences into rows, each into the first that has room.
    #[pyo3(signature = (*args, **kwargs))]
    fn first_fit_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("first_fit_pack", args, kwargs)
    }

    /// Sequences into rows, each into the fullest that has room.
    #[pyo3(signature = (*args, **kwargs))]
    fn best_fit_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("best_fit_pack", args, kwargs)
    }

    /// Sequences into rows, the best of a window of them.
    #[pyo3(signature = (*args, **kwargs))]
    fn window_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("window_pack", args, kwargs)
    }

    /// Sequences one behind the other, cut into rows.
    #[pyo3(signature = (*args, **kwargs))]
    fn concat_then_split_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("concat_then_split_pack", args, kwargs)
    }

    /// Batches of sequences of nearly one length.
    #[pyo3(signature = (*args, **kwargs))]
    fn length_buckets(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("length_buckets", args, kwargs)
    }

    /// The elements of worker processes: all that is in front of this is evaluated there.
    #[pyo3(signature = (options=None, worker_init_fn=None, **kwargs))]
    fn mp_prefetch(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
        worker_init_fn: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<Self> {
        super::check_workers(py, options, worker_init_fn, kwargs)?;
        Self::new(py, self.0.cut())
    }

    /// Starts a pass.
    #[pyo3(signature = (*, threads=0, buffer=2, writable=false, workers=true))]
    fn loader<'py>(
        slf: &Bound<'py, Self>,
        threads: usize,
        buffer: usize,
        writable: bool,
        workers: bool,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        PyDatasetIterator::start(slf.as_any(), &slf.get().0, How { threads, buffer, writable, workers })
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        Self::loader(slf, 0, 2, false, true)
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
        format!("<gristmill.IterDataset {}>", crate::dataset::label(&self.0.dataset()))
    }
}
