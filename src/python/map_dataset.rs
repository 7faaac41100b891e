//! `MapDataset`: random access.

mod inside;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyList, PySlice, PyTuple, PyType};

use super::arguments;
use super::batching::Rest;
use super::callable::Callable;
use super::computed::Computed;
use super::dataset::Dataset;
use super::error::OrRaise;
#[cfg(feature = "cli")]
use super::explain::{self, PyExplanation};
use super::how::Setup;
use super::iter_dataset::PyIterDataset;
use super::iterator::PyDatasetIterator;
use super::loader_options::LoaderOptions;
use super::missing::missing;
use super::mixing::Parts;
use super::numbers::Numbers;
use super::pipeline::{Pipeline, Several, over, over_several};
use super::recipe::{self, Recipe};
use super::shared_docs::shared_docs;
use super::source::{PythonSource, Selection};
use crate::dataset::map::{Concatenate, Range, Select, Source, SplitSizes};
use crate::dataset::{INFINITE, MapDatasetExt};
use crate::spec::by_name;
use crate::spec::chain::Border;
use crate::spec::node::Tree;

/// A dataset with random access: `ds[i]` and `len(ds)`. Elements are shuffled and sharded by index, and evaluated
/// in any order.
#[pyclass(name = "MapDataset", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyMapDataset(Pipeline, Recipe);

type Keywords<'py> = Bound<'py, PyDict>;

#[pymethods]
impl PyMapDataset {
    /// Counts integers, as Python's `range`.
    ///
    /// Args:
    ///     start (int): The first number. If `start` is the only argument, it is the end, and the first number is 0.
    ///     stop (int | None): The end, which is excluded.
    ///     step (int): The difference of neighbours; not 0.
    ///
    /// Raises:
    ///     ConfigError: `step` is 0.
    #[staticmethod]
    #[pyo3(signature = (start, stop=None, step=1))]
    fn range(py: Python<'_>, start: i64, stop: Option<i64>, step: i64) -> PyResult<Self> {
        let (start, stop) = stop.map_or((0, start), |stop| (start, stop));
        let range = Range::with_step(start, stop, step).or_raise(py)?;
        Self::new(py, Pipeline::map_of(Numbers(range)))
    }

    /// Reads the records of an object with `__len__` and `__getitem__`. Index `i` reads record `i % len(source)`.
    ///
    /// A source with `__getitems__` receives a list of indices, and returns a record for each. If `__getitems__` raises
    /// an exception, the records are read individually. An array is copied if it is writable, and either the source
    /// keeps a reference to it or it is a view.
    ///
    /// Args:
    ///     source (Source): A list, an array or a dataset of another library. Threads of the loader call it
    ///         concurrently.
    ///
    /// Raises:
    ///     TypeError: The object has no `__getitem__` or no length.
    #[staticmethod]
    fn source(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = PythonSource::new(source)?;
        let object = source.object();
        Self::calling(py, Pipeline::map_of(Source::new(source)), object)
    }

    /// Computes an element for each index by an object with `__len__` and `__getitem__`. `None` means that the index
    /// has no element.
    ///
    /// Unlike `source`, the object receives the indices of later epochs unchanged.
    ///
    /// Args:
    ///     source (Source): The object. Its length is the length of an epoch.
    ///     dense (bool): Promises an element for each index.
    ///
    /// Raises:
    ///     TypeError: The object has no `__getitem__` or no length.
    #[staticmethod]
    #[pyo3(signature = (source, *, dense=false))]
    fn computed(py: Python<'_>, source: &Bound<'_, PyAny>, dense: bool) -> PyResult<Self> {
        let source = Computed::new(source, dense)?;
        let object = source.object();
        Self::calling(py, Pipeline::map_of(source), object)
    }

    /// Takes elements of several datasets in proportion to weights, in Grain's order.
    ///
    /// The mix ends before the first index at which a dataset has too few elements. Weights count elements: only
    /// `IterDataset.mix` has `by="tokens"`, `budget` and `at_end="redistribute"`.
    ///
    /// Args:
    ///     datasets (Sequence[MapDataset[Any]] | Mapping[str, MapDataset[Any]]): The datasets, in a list or by name.
    ///     weights (Sequence[float] | Mapping[str, float] | Schedule | Sequence[Any] | None): A number for each dataset; all
    ///         equal by default. Or weights that change at certain indices: `gm.schedule`, or its list of entries.
    ///     at_end (Literal["stop", "repeat"]): What happens if a dataset ends. `"repeat"` makes the mix infinite: each
    ///         dataset continues with its next epoch.
    ///
    /// Raises:
    ///     ConfigError: The numbers of weights and datasets differ, a weight is not above 0, or a schedule is not in order.
    #[staticmethod]
    #[pyo3(signature = (datasets, weights=None, *, at_end="stop"))]
    fn mix<'py>(
        py: Python<'py>,
        datasets: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        at_end: &str,
    ) -> PyResult<Self> {
        let mut parts = Parts::<Self>::of(datasets)?;
        let mixing = parts.mixing(py, weights, [("at_end", Tree::Str(at_end.to_owned()))])?;
        let mixed =
            over_several!(parts.datasets.iter().map(|ds| &ds.0), parts => mixing.over_maps(parts).or_raise(py)?);
        Self::over_all(py, mixed, parts.datasets)
    }

    /// Concatenates datasets.
    ///
    /// Args:
    ///     datasets (Sequence[MapDataset[Any]]): The datasets.
    ///
    /// Raises:
    ///     ConfigError: The list is empty.
    #[staticmethod]
    fn concatenate(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let all = over_several!(datasets.iter().map(|ds| &ds.0), parts => Concatenate::new(parts));
        Self::over_all(py, all, datasets)
    }

    /// Makes tuples of the elements of datasets with equal lengths.
    ///
    /// Args:
    ///     datasets (Sequence[MapDataset[Any]]): The datasets.
    ///
    /// Raises:
    ///     ConfigError: The list is empty, or lengths differ.
    #[staticmethod]
    fn zip(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        Self::over_all(py, Pipeline::zip_maps(Several::items(datasets.iter().map(|ds| &ds.0))), datasets)
    }

    /// Takes elements of several datasets in a custom order.
    ///
    /// Args:
    ///     datasets (Sequence[MapDataset[Any]]): The datasets.
    ///     selection_map (SelectionMap): `selection_map[i]` is the number of a dataset and an index in it. All entries
    ///         are read at once.
    ///
    /// Raises:
    ///     ValueError: The map is empty.
    #[staticmethod]
    fn select_from_datasets(
        py: Python<'_>,
        datasets: Vec<PyRef<'_, Self>>,
        selection_map: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let order = Selection::new(selection_map)?;
        let chosen = over_several!(datasets.iter().map(|ds| &ds.0), parts => Select::new(parts, order));
        Self::over_all(py, chosen, datasets)
    }

    fn seed(&self, py: Python<'_>, seed: u32) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.seed(seed)))
    }

    #[pyo3(signature = (seed=None))]
    fn shuffle(&self, py: Python<'_>, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.shuffle(seed)))
    }

    #[pyo3(signature = (window_size, seed=None))]
    fn window_shuffle(&self, py: Python<'_>, window_size: u64, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.window_shuffle(window_size, seed)))
    }

    #[pyo3(signature = (window_blocks, seed=None, *, block_size=None))]
    fn block_shuffle(
        &self,
        py: Python<'_>,
        window_blocks: usize,
        seed: Option<u32>,
        block_size: Option<u64>,
    ) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.block_shuffle(window_blocks, seed).block_size(block_size)))
    }

    /// Takes the elements of a slice: `ds.slice(slice(1, None, 2))` is `ds[1::2]`.
    ///
    /// A slice of a shuffled dataset has other elements in each epoch. Parts of `split` share no elements.
    ///
    /// Args:
    ///     slice (slice): The slice.
    ///
    /// Raises:
    ///     ConfigError: The step is 0.
    fn slice(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        self.sliced(slice)
    }

    /// Divides the elements into parts that share no element in any epoch: `train, validation = ds.split([0.9, 0.1])`.
    ///
    /// A part has its elements in every epoch. Shuffle and repeat the parts, not the dataset before them. Every epoch
    /// of a part reads the first epoch of the stages before it, so use `random_map` after `split`.
    ///
    /// Args:
    ///     sizes (Sequence[float]): The sizes of all parts: fractions, which are below 1, or numbers of elements.
    ///     take (int): The index of the part to return; by default, a list of all parts is returned.
    ///     seed (int): The seed that assigns elements to parts, from 0 to 2^32 - 1. The `seed` of the pipeline
    ///         does not change it.
    ///     shuffle (bool): Whether elements are drawn at random. If false, the first part has the first elements, and
    ///         so on.
    ///
    /// Raises:
    ///     ConfigError: A size is 0 or less, fractions and numbers are mixed, the sizes exceed the dataset, a part is
    ///         empty or not listed, or the dataset has no end.
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

    fn shard(&self, py: Python<'_>, index: u64, count: u64) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.shard(index, count)))
    }

    /// Takes the elements at these indices, in that order.
    ///
    /// Args:
    ///     indices (Sequence[int]): Indices from 0 on. Repeated indices are permitted.
    ///
    /// Raises:
    ///     ConfigError: An index is past the end.
    fn select_indices(&self, py: Python<'_>, indices: &Bound<'_, PyAny>) -> PyResult<Self> {
        // The numbers of an array are copied at once.
        let is_array = indices.hasattr(intern!(py, "__array_interface__"))?;
        let indices: Vec<u64> = match is_array.then(|| indices.extract::<PyReadonlyArray1<'_, u64>>()) {
            Some(Ok(array)) => array.as_array().to_vec(),
            _ => indices.extract()?,
        };
        Self::new(py, over!(&self.0, ds => ds.select_indices(indices)))
    }

    #[pyo3(signature = (num_epochs=None, *, reseed_each_epoch=true))]
    fn repeat(&self, py: Python<'_>, num_epochs: Option<u64>, reseed_each_epoch: bool) -> PyResult<Self> {
        Self::new(py, over!(&self.0, ds => ds.repeat(num_epochs).reseed_each_epoch(reseed_each_epoch)))
    }

    #[doc = shared_docs!(map)]
    fn map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map")?;
        Self::calling(py, self.0.map(function.clone()), function)
    }

    #[doc = shared_docs!(map_with_index)]
    fn map_with_index(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "map_with_index")?;
        Self::calling(py, self.0.map_with_index(function.clone()), function)
    }

    #[doc = shared_docs!(random_map)]
    #[pyo3(signature = (transform, *, seed=None))]
    fn random_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, seed: Option<u32>) -> PyResult<Self> {
        let function = Callable::new(transform, "random_map")?;
        Self::calling(py, self.0.random_map(function.clone(), seed), function)
    }

    /// Keeps the elements for which a function returns true, or for which a native condition on a column holds.
    ///
    /// The length does not change. A dropped element leaves an empty slot: `ds[i]` is `None`, and a stream skips the
    /// slot.
    ///
    /// Args:
    ///     transform (Callable[[Any], object] | Filter | None): A function of an element that returns a true value for
    ///         elements to keep, or an object with a method `filter`.
    ///     column (str | None): The column of the native condition. All given conditions must hold.
    ///     min_length (int | None): Minimum length, in bytes of text or rows of an array.
    ///     max_length (int | None): Maximum length, in bytes of text or rows of an array.
    ///     min (float | None): Minimum value, inclusive.
    ///     max (float | None): Maximum value, inclusive.
    ///     equals (str | None): Text that the value must equal.
    ///
    /// Raises:
    ///     ConfigError: An argument is invalid, or a column does not exist.
    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, transform=None, /, *, column=None, min_length=None, max_length=None, min=None, max=None, equals=None)")]
    fn filter(&self, args: &Bound<'_, PyTuple>, kwargs: Option<&Keywords<'_>>) -> PyResult<Self> {
        match super::function_argument("filter", args, kwargs)? {
            Some(function) => Self::calling(args.py(), self.0.filter(function.clone(), None), function),
            None => self.native("filter", args, kwargs),
        }
    }

    /// Replaces every element by the elements that a function returns, in `max_fan_out` slots. Slots without an element
    /// are empty.
    ///
    /// Args:
    ///     transform (Callable[[Any], Iterable[Any]] | FlatMap): A function of an element that returns elements, or an
    ///         object with a method `flat_map`.
    ///     max_fan_out (int | None): The greatest number of elements for one element; by default, the attribute of
    ///         `transform`.
    ///
    /// Raises:
    ///     TypeError: There is no `max_fan_out`.
    ///     DataError: The function returned more elements.
    #[pyo3(signature = (transform, max_fan_out=None))]
    fn flat_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, max_fan_out: Option<usize>) -> PyResult<Self> {
        let max_fan_out = inside::max_fan_out(transform, max_fan_out)?;
        let function = Callable::new(transform, "flat_map")?;
        Self::calling(py, self.0.fan_out(max_fan_out, function.clone()), function)
    }

    /// Replaces elements that are `None` by empty slots.
    fn drop_none(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.drop_none())
    }

    /// Replaces empty slots by `None`, so that each index has an element, as `batch` requires.
    fn slots(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.slots())
    }

    /// Stacks consecutive elements into batches, by index.
    ///
    /// Batches have fixed indices, so any thread makes any batch. No batch has elements of two epochs.
    ///
    /// Args:
    ///     batch_size (int): Number of elements in a batch.
    ///     drop_remainder (bool): Drops the last elements if they do not fill a batch, as `remainder="drop"` does. The
    ///         name is Grain's.
    ///     batch_fn (Callable[[list[Any]], Any] | None): Makes the batch of a list of elements. Without it, elements
    ///         are stacked.
    ///     remainder (Literal["keep", "drop"] | None): Policy for the last elements of an epoch if they do not fill a
    ///         batch: `"keep"`, the default, makes a smaller batch; `"drop"` drops them. Only streams fill batches up.
    ///
    /// Raises:
    ///     ConfigError: `batch_size` is 0, options contradict each other, or an element may be missing (see `slots`).
    ///     ValueError: Elements differ in structure or shape. The message names the place.
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

    /// Makes a stream of one epoch. Empty slots are skipped.
    fn to_iter_dataset(&self, py: Python<'_>) -> PyResult<PyIterDataset> {
        PyIterDataset::new(py, self.0.clone().into_stream(Border::default()))
    }

    /// Makes a stream of one epoch, with a policy for bad records and thresholds for filters.
    ///
    /// Args:
    ///     on_bad_record (Literal["error", "skip"]): `"skip"` skips records that sources and native stages cannot use,
    ///         and counts them in the report and the state.
    ///     bad_record_limit (int | None): The greatest number of skipped records; no limit by default.
    ///     consecutive_bad_record_limit (int | None): The greatest number of consecutive skipped records; no limit by
    ///         default.
    ///     warn (float | None): The share of 1000 elements that filters may drop before a warning is logged; `0.9` by
    ///         default.
    ///     thresholds (float | None): `raise`, given as `**{"raise": 0.99}`: the share that is an error; no share by
    ///         default.
    ///
    /// Raises:
    ///     ConfigError: A limit is given, and records are not skipped.
    #[pyo3(signature = (**kwargs), text_signature = "($self, *, on_bad_record='error', bad_record_limit=None, consecutive_bad_record_limit=None, warn=None, **thresholds)")]
    fn to_iter(&self, py: Python<'_>, kwargs: Option<&Keywords<'_>>) -> PyResult<PyIterDataset> {
        let arguments = arguments::tree("to_iter", &PyTuple::empty(py), kwargs)?;
        PyIterDataset::new(py, self.0.clone().into_stream(by_name::border(arguments).or_raise(py)?))
    }

    #[pyo3(signature = (options=None, worker_init_fn=None, **kwargs))]
    fn _mp_prefetch(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
        worker_init_fn: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<PyIterDataset> {
        super::check_workers(py, options, worker_init_fn, kwargs)?;
        PyIterDataset::new(py, self.0.cut())
    }

    #[pyo3(signature = (**options))]
    fn _loader<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Keywords<'py>>,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
        LoaderOptions::of(slf.py(), options)?.start(slf.as_any(), &slf.get().0)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDatasetIterator>> {
        PyDatasetIterator::start(slf.as_any(), &slf.get().0, Setup::default())
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

    /// Called for an unknown attribute.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        Err(missing(slf.as_any(), name))
    }

    #[doc = shared_docs!(element_spec)]
    #[getter]
    fn element_spec<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("gristmill._spec")?.call_method1("element_spec", (slf,))
    }

    #[doc = shared_docs!(apply)]
    fn apply<'py>(slf: &Bound<'py, Self>, transform: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        transform.call1((slf,))
    }

    #[doc = shared_docs!(explain)]
    #[cfg(feature = "cli")]
    #[pyo3(signature = (*, threads=0, buffer=2))]
    fn explain(slf: &Bound<'_, Self>, threads: usize, buffer: usize) -> PyResult<PyExplanation> {
        explain::explain(slf.as_any(), &slf.get().0.dataset(), threads, buffer)
    }

    /// The recipe of the dataset.
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
        format!("<gristmill.MapDataset {}>", crate::dataset::chain(&*self.0.stage()))
    }
}
