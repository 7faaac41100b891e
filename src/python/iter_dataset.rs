//! `IterDataset`: a stream.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyTuple, PyType};

use super::arguments;
use super::batching::{Batching, Rest};
use super::callable::Callable;
use super::convert;
use super::error::OrRaise;
#[cfg(feature = "cli")]
use super::explain::{self, PyExplanation};
use super::how::Setup;
use super::interpreter::detached;
use super::item::Item;
use super::iterator::PyDatasetIterator;
use super::keys;
use super::loader_options::LoaderOptions;
use super::map_dataset::PyMapDataset;
use super::missing::missing;
use super::recipe::{self, Recipe};
use super::stream_source::PythonStream;
use super::streams::{Streams, behind};
use super::warnings;
use crate::dataset::iter::{BadRecords, ZipLength, interleave, interleave_from, mix};
use crate::dataset::{BoxIter, IterDataset};
use crate::spec::Pipeline;
use crate::spec::chain::Chain;
use crate::spec::node::Tree;

#[doc = docs!(IterDataset)]
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

    /// Makes a dataset that calls a Python function.
    fn calling(py: Python<'_>, streams: Streams, function: Callable) -> PyResult<Self> {
        Ok(Self(streams.checked(py)?, Recipe::new(vec![function], Vec::new())))
    }

    /// Makes a dataset of several.
    fn over_all(py: Python<'_>, streams: Streams, parts: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let parts = parts.into_iter().map(|part| Py::from(part).into_any()).collect();
        Ok(Self(streams.checked(py)?, Recipe::new(Vec::new(), parts)))
    }

    /// The dataset that a loader runs.
    #[cfg_attr(
        not(all(feature = "workers", target_os = "linux")),
        expect(dead_code, reason = "only what crosses to or from workers needs it")
    )]
    pub(super) fn dataset(&self) -> BoxIter<Item> {
        self.0.dataset()
    }

    fn source_named(name: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        let streams = detached(py, || Streams::source(name, arguments)).or_raise(py);
        warnings::log(py);
        streams.map(Self::of)
    }

    fn native(&self, name: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let (py, arguments) = (args.py(), arguments::tree(name, args, kwargs)?);
        detached(py, || self.0.native(name, arguments)).or_raise(py).map(Self::of)
    }
}

#[pymethods]
impl PyIterDataset {
    #[doc = docs!(IterDataset.from_file)]
    #[staticmethod]
    fn from_file(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        detached(py, || Ok(Streams::native_stream(Pipeline::from_file(path)?.build()?))).or_raise(py).map(Self::of)
    }

    #[doc = docs!(signature IterDataset.jsonl)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn jsonl(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("jsonl", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.lines)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn lines(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("lines", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.csv)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn csv(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("csv", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.tfrecord)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn tfrecord(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let named = arguments::has_fields(kwargs)?;
        let Self(streams, recipe) = Self::source_named("tfrecord", args, kwargs)?;
        Ok(Self(if named { streams } else { streams.bytes() }, recipe))
    }

    #[doc = docs!(signature IterDataset.webdataset)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn webdataset(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("webdataset", args, kwargs)
    }

    #[doc = docs!(IterDataset.source)]
    #[staticmethod]
    #[pyo3(signature = (source, *, epochs=None))]
    fn source(py: Python<'_>, source: &Bound<'_, PyAny>, epochs: Option<u64>) -> PyResult<Self> {
        let source = PythonStream::new(source, epochs)?;
        let object = source.object();
        Self::calling(py, Streams::Items(Chain::Iter(source.boxed())), object)
    }

    #[doc = docs!(IterDataset.zip)]
    #[staticmethod]
    #[pyo3(signature = (datasets, *, strict=true))]
    fn zip(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, strict: bool) -> PyResult<Self> {
        let streams: Vec<_> = datasets.iter().map(|ds| &ds.0).collect();
        let zipped = Streams::zip(&streams, if strict { ZipLength::Equal } else { ZipLength::Shortest });
        Self::over_all(py, zipped, datasets)
    }

    #[doc = docs!(IterDataset.mix)]
    #[staticmethod]
    #[pyo3(signature = (datasets, weights=None))]
    fn mix(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, weights: Option<Vec<f64>>) -> PyResult<Self> {
        let weights = weights.unwrap_or_else(|| vec![1.0; datasets.len()]);
        let mixed = mix(datasets.iter().map(|ds| ds.0.dataset())).weights(weights);
        Self::over_all(py, Streams::Items(Chain::Iter(mixed.boxed())), datasets)
    }

    #[doc = docs!(IterDataset.interleave)]
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

    #[doc = docs!(IterDataset.seed)]
    fn seed(&self, py: Python<'_>, seed: u32) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.seed(seed)))
    }

    #[doc = docs!(IterDataset.window_shuffle)]
    #[pyo3(signature = (window_size, seed=None))]
    fn window_shuffle(&self, py: Python<'_>, window_size: usize, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.window_shuffle(window_size, seed)))
    }

    #[doc = docs!(IterDataset.repeat)]
    #[pyo3(signature = (num_epochs=None))]
    fn repeat(&self, py: Python<'_>, num_epochs: Option<u64>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.repeat(num_epochs)))
    }

    #[doc = docs!(IterDataset.limit)]
    fn limit(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.limit(count)))
    }

    #[doc = docs!(IterDataset.take)]
    fn take(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        self.limit(py, count)
    }

    #[doc = docs!(IterDataset.skip)]
    fn skip(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.skip(count)))
    }

    #[doc = docs!(IterDataset.enumerate)]
    #[pyo3(signature = (start=0, *, column=None))]
    fn enumerate(&self, py: Python<'_>, start: i64, column: Option<String>) -> PyResult<Self> {
        let Some(column) = column else { return Self::new(py, self.0.enumerate(start)) };
        let arguments = arguments::named([("column", Tree::Str(column)), ("start", Tree::Int(start))]);
        detached(py, || self.0.native("enumerate", arguments)).or_raise(py).map(Self::of)
    }

    #[doc = docs!(IterDataset.skip_bad_records)]
    #[pyo3(signature = (limit=None, consecutive=None))]
    fn skip_bad_records(&self, py: Python<'_>, limit: Option<u64>, consecutive: Option<u64>) -> PyResult<Self> {
        Self::new(py, self.0.skip_bad_records(BadRecords::Skip { limit, consecutive }))
    }

    #[doc = docs!(IterDataset.cache)]
    fn cache(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.cache()))
    }

    #[doc = docs!(IterDataset.map)]
    fn map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map")?;
        Self::calling(py, self.0.map(function.clone()), function)
    }

    #[doc = docs!(IterDataset.map_with_index)]
    fn map_with_index(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map_with_index")?;
        Self::calling(py, self.0.map_with_index(function.clone()), function)
    }

    #[doc = docs!(IterDataset.random_map)]
    #[pyo3(signature = (transform, *, seed=None))]
    fn random_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, seed: Option<u32>) -> PyResult<Self> {
        let function = Callable::new(transform, "random_map")?;
        Self::calling(py, self.0.random_map(function.clone(), seed), function)
    }

    #[doc = docs!(signature IterDataset.filter)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn filter(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        let (thresholds, kwargs) = arguments::thresholds(kwargs)?;
        match super::function_argument("filter", args, kwargs.as_ref())? {
            Some(function) => Self::calling(args.py(), self.0.filter(function.clone(), thresholds), function),
            None if thresholds.is_some() => Err(PyTypeError::new_err(
                "filter() takes warn and raise only with a function; for a condition, give them to to_iter()",
            )),
            None => self.native("filter", args, kwargs.as_ref()),
        }
    }

    #[doc = docs!(IterDataset.drop_none)]
    fn drop_none(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.drop_none())
    }

    #[doc = docs!(IterDataset.flat_map)]
    fn flat_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "flat_map")?;
        Self::calling(py, self.0.flat_map(function.clone()), function)
    }

    #[doc = docs!(IterDataset.batch)]
    #[pyo3(signature = (
        batch_size, drop_remainder=false, batch_fn=None, *, remainder=None, pad_value=None, mask=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
    fn batch(
        &self,
        py: Python<'_>,
        batch_size: usize,
        drop_remainder: bool,
        batch_fn: Option<&Bound<'_, PyAny>>,
        remainder: Option<String>,
        pad_value: Option<f64>,
        mask: Option<String>,
    ) -> PyResult<Self> {
        let rest = Rest { drop: drop_remainder, remainder, pad_value, mask };
        match Batching::new(py, batch_size, rest, batch_fn)? {
            Batching::Stacked(remainder) => Self::new(py, self.0.batch(batch_size, remainder)),
            Batching::Made(remainder, function) => {
                Self::calling(py, self.0.batch_fn(batch_size, remainder, function.clone()), function)
            }
            Batching::Padded(arguments) => {
                detached(py, || self.0.native("batch", arguments)).or_raise(py).map(Self::of)
            }
        }
    }

    #[doc = docs!(signature IterDataset.rebatch)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn rebatch(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("rebatch", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.tokenise)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn tokenise(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("tokenise", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.select_columns)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn select_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("select_columns", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.drop_columns)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn drop_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("drop_columns", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.parse_example)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn parse_example(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("parse_example", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.parse_sequence_example)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn parse_sequence_example(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("parse_sequence_example", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.packed_columns)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn packed_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("packed_columns", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.rename)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn rename(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("rename", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.first_fit_pack)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn first_fit_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("first_fit_pack", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.best_fit_pack)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn best_fit_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("best_fit_pack", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.window_pack)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn window_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("window_pack", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.concat_then_split_pack)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn concat_then_split_pack(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("concat_then_split_pack", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.length_buckets)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn length_buckets(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("length_buckets", args, kwargs)
    }

    #[doc = docs!(signature IterDataset.mp_prefetch)]
    #[pyo3(signature = (options=None, worker_init_fn=None, **kwargs), text_signature = None)]
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

    #[doc = docs!(signature IterDataset.loader)]
    #[pyo3(signature = (**options), text_signature = None)]
    fn loader<'py>(slf: &Bound<'py, Self>, options: Option<&Keywords<'py>>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        LoaderOptions::of(slf.py(), options)?.start(slf.as_any(), &slf.get().0)
    }

    /// Calls of `len`, such as torch's `DataLoader` makes, end in an error with a remedy. The stub has no `__len__`.
    fn __len__(&self) -> PyResult<usize> {
        let text = "object of type 'gristmill.IterDataset' has no len(): a stream is counted by reading it. \
                    For torch's DataLoader, wrap it: DataLoader(gristmill.torch.IterableDataset(ds), batch_size=None)";
        Err(PyTypeError::new_err(text))
    }

    /// True, without a length.
    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        PyDatasetIterator::start(slf.as_any(), &slf.get().0, Setup::default())
    }

    /// Whether the next elementwise stage runs inside lanes, behind `mp_prefetch` too.
    #[getter]
    fn _in_lanes(&self) -> bool {
        self.0.in_lanes()
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::generic(cls, item)
    }

    /// Asked where there is no such attribute.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        Err(missing(slf.as_any(), name))
    }

    #[doc = docs!(IterDataset.make_keys)]
    fn make_keys<'py>(slf: &Bound<'py, Self>, folder: PathBuf) -> PyResult<Vec<Bound<'py, PyDict>>> {
        keys::make(slf.as_any(), &slf.get().0.dataset(), folder)
    }

    #[doc = docs!(IterDataset.element_spec)]
    #[getter]
    fn element_spec<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill._spec")?.call_method1("element_spec", (slf,))
    }

    #[doc = docs!(IterDataset.apply)]
    fn apply<'py>(slf: &Bound<'py, Self>, transform: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        transform.call1((slf,))
    }

    #[doc = docs!(IterDataset.explain)]
    #[cfg(feature = "cli")]
    #[pyo3(signature = (*, threads=0, buffer=2))]
    fn explain(slf: &Bound<'_, Self>, threads: usize, buffer: usize) -> PyResult<PyExplanation> {
        explain::explain(slf.as_any(), &slf.get().0.dataset(), threads, buffer)
    }

    /// The recipe by which it was made.
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
        format!("<gristmill.IterDataset {}>", crate::dataset::chain(&self.0.dataset()))
    }
}
