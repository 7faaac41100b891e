//! `MapDataset`: random access.

mod inside;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyList, PySlice, PyTuple, PyType};

use super::arguments;
use super::batching::Rest;
use super::callable::Callable;
use super::computed::Computed;
use super::convert;
use super::error::OrRaise;
#[cfg(feature = "cli")]
use super::explain::{self, PyExplanation};
use super::how::Setup;
use super::item::Item;
use super::iter_dataset::PyIterDataset;
use super::iterator::PyDatasetIterator;
use super::loader_options::LoaderOptions;
use super::maps::{Maps, Several, over, over_several};
use super::missing::missing;
use super::numbers::Numbers;
use super::recipe::{self, Recipe};
use super::source::{PythonSource, Selection};
use super::streams::Streams;
use crate::dataset::map::{Concatenate, Mix, Range, Select, Source, SplitSizes, ZipAll};
use crate::dataset::{INFINITE, MapDataset};
use crate::spec::by_name;
use crate::spec::chain::Border;

#[doc = docs!(MapDataset)]
#[pyclass(name = "MapDataset", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyMapDataset(Maps, Recipe);

type Keywords<'py> = Bound<'py, PyDict>;

#[pymethods]
impl PyMapDataset {
    #[doc = docs!(MapDataset.range)]
    #[staticmethod]
    #[pyo3(signature = (start, stop=None, step=1))]
    fn range(py: Python<'_>, start: i64, stop: Option<i64>, step: i64) -> PyResult<Self> {
        let (start, stop) = stop.map_or((0, start), |stop| (start, stop));
        let range = Range::with_step(start, stop, step).or_raise(py)?;
        Self::new(py, Maps::Items(Numbers(range).boxed()))
    }

    #[doc = docs!(MapDataset.source)]
    #[staticmethod]
    fn source(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = PythonSource::new(source)?;
        let object = source.object();
        Self::calling(py, Maps::Items(Source::new(source).boxed()), object)
    }

    #[doc = docs!(MapDataset.computed)]
    #[staticmethod]
    #[pyo3(signature = (source, *, dense=false))]
    fn computed(py: Python<'_>, source: &Bound<'_, PyAny>, dense: bool) -> PyResult<Self> {
        let source = Computed::new(source, dense)?;
        let object = source.object();
        Self::calling(py, Maps::Items(source.boxed()), object)
    }

    #[doc = docs!(signature MapDataset.jsonl)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn jsonl(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("jsonl", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.arrow)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn arrow(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::of_arrow(args, kwargs)
    }

    #[doc = docs!(signature MapDataset.lines)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn lines(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("lines", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.csv)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn csv(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("csv", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.parquet)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn parquet(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("parquet", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.array_record)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn array_record(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::records_named("array_record", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.tfrecord)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn tfrecord(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::records_named("tfrecord", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.bagz)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn bagz(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::records_named("bagz", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.megatron)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn megatron(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("megatron", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.webdataset)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn webdataset(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("webdataset", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.mds)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn mds(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("mds", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.npz)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn npz(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("npz", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.safetensors)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn safetensors(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("safetensors", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.npy)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn npy(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("npy", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.crops)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn crops(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("crops", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.random_crops)]
    #[staticmethod]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn random_crops(args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        Self::source_named("random_crops", args, kwargs)
    }

    #[doc = docs!(MapDataset.mix)]
    #[staticmethod]
    #[pyo3(signature = (datasets, weights=None))]
    fn mix(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, weights: Option<Vec<f64>>) -> PyResult<Self> {
        let weights = weights.unwrap_or_else(|| vec![1.0; datasets.len()]);
        Self::over_all(py, over_several!(Self::several(&datasets), parts => Mix::new(parts).weights(weights)), datasets)
    }

    #[doc = docs!(MapDataset.concatenate)]
    #[staticmethod]
    fn concatenate(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        Self::over_all(py, over_several!(Self::several(&datasets), parts => Concatenate::new(parts)), datasets)
    }

    #[doc = docs!(MapDataset.zip)]
    #[staticmethod]
    fn zip(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let zipped = ZipAll::new(datasets.iter().map(|ds| ds.0.items()).collect());
        let maps = Maps::Items(convert::map(zipped, |items| Ok(Item::Tuple(items))));
        Self::over_all(py, maps, datasets)
    }

    #[doc = docs!(MapDataset.select_from_datasets)]
    #[staticmethod]
    fn select_from_datasets(
        py: Python<'_>,
        datasets: Vec<PyRef<'_, Self>>,
        selection_map: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let order = Selection::new(selection_map)?;
        Self::over_all(py, over_several!(Self::several(&datasets), parts => Select::new(parts, order)), datasets)
    }

    #[doc = docs!(MapDataset.seed)]
    fn seed(&self, py: Python<'_>, seed: u32) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.seed(seed)))
    }

    #[doc = docs!(MapDataset.shuffle)]
    #[pyo3(signature = (seed=None))]
    fn shuffle(&self, py: Python<'_>, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.shuffle(seed)))
    }

    #[doc = docs!(MapDataset.window_shuffle)]
    #[pyo3(signature = (window_size, seed=None))]
    fn window_shuffle(&self, py: Python<'_>, window_size: u64, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.window_shuffle(window_size, seed)))
    }

    #[doc = docs!(MapDataset.block_shuffle)]
    #[pyo3(signature = (window_blocks, seed=None, *, block_size=None))]
    fn block_shuffle(
        &self,
        py: Python<'_>,
        window_blocks: usize,
        seed: Option<u32>,
        block_size: Option<u64>,
    ) -> PyResult<Self> {
        self.block_shuffled(py, window_blocks, seed, block_size)
    }

    #[doc = docs!(MapDataset.slice)]
    fn slice(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        self.sliced(slice)
    }

    #[doc = docs!(MapDataset.split)]
    #[pyo3(signature = (sizes, take=None, *, seed=0, shuffle=true))]
    fn split<'py>(
        slf: &Bound<'py, Self>,
        sizes: Vec<f64>,
        take: Option<usize>,
        seed: u32,
        shuffle: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if let Some(take) = take {
            let sizes = SplitSizes::new(sizes).seed(seed).shuffle(shuffle);
            let part = Self::new(py, over!(&slf.get().0, ds => ds.split(&sizes, take)))?;
            return Ok(Bound::new(py, part)?.into_any());
        }
        // By the method, which notes how each part is made.
        let options = PyDict::new(py);
        options.set_item("seed", seed)?;
        options.set_item("shuffle", shuffle)?;
        let part = |take| slf.call_method("split", (sizes.clone(), take), Some(&options));
        Ok(PyList::new(py, (0..sizes.len()).map(part).collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    #[doc = docs!(MapDataset.shard)]
    fn shard(&self, py: Python<'_>, index: u64, count: u64) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.shard(index, count)))
    }

    #[doc = docs!(MapDataset.select_indices)]
    fn select_indices(&self, py: Python<'_>, indices: Vec<u64>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.select_indices(indices)))
    }

    #[doc = docs!(MapDataset.repeat)]
    #[pyo3(signature = (num_epochs=None, *, reseed_each_epoch=true))]
    fn repeat(&self, py: Python<'_>, num_epochs: Option<u64>, reseed_each_epoch: bool) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.repeat(num_epochs).reseed_each_epoch(reseed_each_epoch)))
    }

    #[doc = docs!(MapDataset.map)]
    fn map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map")?;
        Self::calling(py, self.0.map(function.clone()), function)
    }

    #[doc = docs!(MapDataset.map_with_index)]
    fn map_with_index(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map_with_index")?;
        Self::calling(py, self.0.map_with_index(function.clone()), function)
    }

    #[doc = docs!(MapDataset.random_map)]
    #[pyo3(signature = (transform, *, seed=None))]
    fn random_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, seed: Option<u32>) -> PyResult<Self> {
        let function = Callable::new(transform, "random_map")?;
        Self::calling(py, self.0.random_map(function.clone(), seed), function)
    }

    #[doc = docs!(signature MapDataset.filter)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn filter(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        match super::function_argument("filter", args, kwargs)? {
            Some(function) => Self::calling(args.py(), self.0.filter(function.clone()), function),
            None => self.native("filter", args, kwargs),
        }
    }

    #[doc = docs!(MapDataset.flat_map)]
    #[pyo3(signature = (transform, max_fan_out=None))]
    fn flat_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, max_fan_out: Option<usize>) -> PyResult<Self> {
        let max_fan_out = inside::max_fan_out(transform, max_fan_out)?;
        let function = Callable::new(transform, "flat_map")?;
        Self::calling(py, self.0.flat_map(max_fan_out, function.clone()), function)
    }

    #[doc = docs!(MapDataset.drop_none)]
    fn drop_none(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.drop_none())
    }

    #[doc = docs!(MapDataset.slots)]
    fn slots(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.slots())
    }

    #[doc = docs!(MapDataset.batch)]
    #[pyo3(signature = (batch_size, drop_remainder=false, batch_fn=None, *, remainder=None))]
    fn batch(
        &self,
        py: Python<'_>,
        batch_size: usize,
        drop_remainder: bool,
        batch_fn: Option<&Bound<'_, PyAny>>,
        remainder: Option<String>,
    ) -> PyResult<Self> {
        self.batched(py, batch_size, Rest { drop: drop_remainder, remainder, pad_value: None, mask: None }, batch_fn)
    }

    #[doc = docs!(signature MapDataset.tokenise)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn tokenise(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("tokenise", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.select_columns)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn select_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("select_columns", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.drop_columns)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn drop_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("drop_columns", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.parse_example)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn parse_example(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("parse_example", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.parse_sequence_example)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn parse_sequence_example(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("parse_sequence_example", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.packed_columns)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn packed_columns(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("packed_columns", args, kwargs)
    }

    #[doc = docs!(signature MapDataset.rename)]
    #[pyo3(signature = (*args, **kwargs), text_signature = None)]
    fn rename(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        self.native("rename", args, kwargs)
    }

    #[doc = docs!(MapDataset.to_iter_dataset)]
    fn to_iter_dataset(&self, py: Python<'_>) -> PyResult<PyIterDataset> {
        PyIterDataset::new(py, Streams::of(&self.0, Border::default()))
    }

    #[doc = docs!(signature MapDataset.to_iter)]
    #[pyo3(signature = (**kwargs), text_signature = None)]
    fn to_iter(&self, py: Python<'_>, kwargs: Option<&Keywords<'_>>) -> PyResult<PyIterDataset> {
        let arguments = arguments::tree("to_iter", &PyTuple::empty(py), kwargs)?;
        PyIterDataset::new(py, Streams::of(&self.0, by_name::border(arguments).or_raise(py)?))
    }

    #[doc = docs!(signature MapDataset.mp_prefetch)]
    #[pyo3(signature = (options=None, worker_init_fn=None, **kwargs), text_signature = None)]
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

    #[doc = docs!(signature MapDataset.loader)]
    #[pyo3(signature = (**options), text_signature = None)]
    fn loader<'py>(slf: &Bound<'py, Self>, options: Option<&Keywords<'py>>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        LoaderOptions::of(slf.py(), options)?.start(slf.as_any(), &Streams::of(&slf.get().0, Border::default()))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        let streams = Streams::of(&slf.get().0, Border::default());
        PyDatasetIterator::start(slf.as_any(), &streams, Setup::default())
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

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::generic(cls, item)
    }

    /// Asked where there is no such attribute.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        Err(missing(slf.as_any(), name))
    }

    #[doc = docs!(MapDataset.element_spec)]
    #[getter]
    fn element_spec<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill._spec")?.call_method1("element_spec", (slf,))
    }

    #[doc = docs!(MapDataset.apply)]
    fn apply<'py>(slf: &Bound<'py, Self>, transform: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        transform.call1((slf,))
    }

    #[doc = docs!(MapDataset.explain)]
    #[cfg(feature = "cli")]
    #[pyo3(signature = (*, threads=0, buffer=2))]
    fn explain(slf: &Bound<'_, Self>, threads: usize, buffer: usize) -> PyResult<PyExplanation> {
        let streams = Streams::of(&slf.get().0, Border::default());
        explain::explain(slf.as_any(), &streams.dataset(), threads, buffer)
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
        format!("<gristmill.MapDataset {}>", crate::dataset::chain(self.0.stage()))
    }
}
