//! `IterDataset`: a stream.

mod inside;

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyTuple, PyType};

use super::arguments;
use super::batching::{Batching, Rest};
use super::callable::Callable;
use super::dataset::Dataset;
use super::error::OrRaise;
#[cfg(feature = "cli")]
use super::explain::{self, PyExplanation};
use super::how::Setup;
use super::interpreter::detached;
use super::iterator::PyDatasetIterator;
use super::json;
use super::keys;
use super::ledger::Logged;
use super::loader_options::LoaderOptions;
use super::map_dataset::PyMapDataset;
use super::missing::missing;
use super::mixing::Parts;
use super::pipeline::{Pipeline, behind};
use super::recipe::{self, Recipe};
use super::shared_docs::shared_docs;
use super::stream_source::PythonStream;
use crate::dataset::IterDatasetExt;
use crate::dataset::iter::{BadRecords, ZipLength, interleave, interleave_from};
use crate::spec;
use crate::spec::node::Tree;

/// A stream: its elements are read in order, and its state is small. `loader` chooses the executor, which changes
/// no element.
#[pyclass(name = "IterDataset", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PyIterDataset(Pipeline, Recipe);

type Keywords<'py> = Bound<'py, PyDict>;

#[pymethods]
impl PyIterDataset {
    /// Builds the pipeline of a file in YAML, TOML or JSON.
    ///
    /// Args:
    ///     path (str | PathLike[str]): The file. Relative paths in it start at its folder.
    ///
    /// Raises:
    ///     ConfigError: The file is invalid. The message names line and key.
    ///     IoError: A file cannot be opened or read.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        detached(py, || Ok(Pipeline::native_stream(spec::Pipeline::from_file(path)?.build()?)))
            .or_raise(py)
            .map(Self::of)
    }

    /// Reads a stream written in Python. Each `iter(source)` starts a pass.
    ///
    /// If a pass has `get_state` and `set_state`, a resume uses them; the state is a value of JSON. Otherwise, a resume
    /// reads the stream again up to the next element. A writable array is copied if the stream keeps a reference to it.
    ///
    /// Args:
    ///     source (Iterable[Any]): An iterable that can be iterated over repeatedly.
    ///     epochs (int | None): Number of epochs of a stream with `set_epoch`, such as a shuffled `IterableDataset` of
    ///         Hugging Face: `set_epoch(0)`, `set_epoch(1)`, … is called before each. By default the source is read
    ///         once, and `repeat` reads it in equal order each time.
    ///
    /// Raises:
    ///     TypeError: The source is not iterable, or has no `set_epoch` although `epochs` is given.
    ///     ValueError: `epochs` is 0.
    #[staticmethod]
    #[pyo3(signature = (source, *, epochs=None))]
    fn source(py: Python<'_>, source: &Bound<'_, PyAny>, epochs: Option<u64>) -> PyResult<Self> {
        let source = PythonStream::new(source, epochs)?;
        let object = source.object();
        Self::calling(py, Pipeline::stream_of(source), object)
    }

    /// Makes tuples of an element of each stream.
    ///
    /// Args:
    ///     datasets (Sequence[IterDataset[Any]]): The streams.
    ///     strict (bool): Whether it is an error if a stream ends before the others. If false, the zip ends with the
    ///         shortest stream.
    ///
    /// Raises:
    ///     DataError: A stream ended before the others.
    #[staticmethod]
    #[pyo3(signature = (datasets, *, strict=true))]
    fn zip(py: Python<'_>, datasets: Vec<PyRef<'_, Self>>, strict: bool) -> PyResult<Self> {
        let streams: Vec<_> = datasets.iter().map(|ds| &ds.0).collect();
        let zipped = Pipeline::zip(&streams, if strict { ZipLength::Equal } else { ZipLength::Shortest });
        Self::over_all(py, zipped, datasets)
    }

    /// Takes elements of several streams in proportion to weights, in Grain's order.
    ///
    /// With `by="tokens"`, the next element is of the stream that is furthest below its share of all tokens. A stream
    /// exceeds its share by at most its last element.
    ///
    /// Args:
    ///     datasets (Sequence[IterDataset[Any]] | Mapping[str, IterDataset[Any]]): The streams, in a list or by name.
    ///     weights (Sequence[float] | Mapping[str, float] | Schedule | Sequence[Any] | None): A number for each stream; all
    ///         equal by default. Or weights that change at certain positions: `gm.schedule`, or its list of entries.
    ///     by (Literal["elements", "tokens"]): Unit of weights, positions and budgets.
    ///     column (str): Column whose length is the number of tokens of an element.
    ///     at_end (Literal["stop", "repeat", "redistribute"]): What happens if a stream ends: the mix ends, the stream starts
    ///         again, or its weight is divided among the others.
    ///     budget (Mapping[str, float] | None): Elements or tokens after which a stream ends, by name, or by its number as
    ///         text. The element that reaches the limit is delivered.
    ///
    /// Raises:
    ///     ConfigError: The numbers of weights and streams differ, a weight is not above 0, a name is unknown, or a schedule is
    ///         not in order.
    ///     DataError: An element has no column `column`, or a stream to repeat has no elements.
    #[staticmethod]
    #[pyo3(signature = (datasets, weights=None, *, by="elements", column="tokens", at_end="stop", budget=None))]
    fn mix<'py>(
        py: Python<'py>,
        datasets: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
        by: &str,
        column: &str,
        at_end: &str,
        budget: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let mut parts = Parts::<Self>::of(datasets)?;
        let words =
            [("by", by), ("column", column), ("at_end", at_end)].map(|(name, word)| (name, Tree::Str(word.to_owned())));
        let budget = budget.map_or(Ok(Tree::Null), |budget| arguments::value(budget, 0))?;
        let mixing = parts.mixing(py, weights, words.into_iter().chain([("budget", budget)]))?;
        let mixed = mixing.over_streams(parts.datasets.iter().map(|ds| ds.0.dataset()).collect());
        Self::over_all(py, Pipeline::stream_of(mixed), parts.datasets)
    }

    /// Takes an element of each of `cycle_length` streams in turn. The next stream replaces a stream that ended.
    ///
    /// Args:
    ///     datasets (Sequence[IterDataset[Any]] | MapDataset[IterDataset[Any]]): A list of streams, or a `MapDataset`
    ///         whose elements are streams, made when they are opened.
    ///     cycle_length (int): Number of open streams.
    ///
    /// Raises:
    ///     ConfigError: `cycle_length` is 0.
    #[staticmethod]
    fn interleave(py: Python<'_>, datasets: &Bound<'_, PyAny>, cycle_length: usize) -> PyResult<Self> {
        if let Ok(made) = datasets.cast::<PyMapDataset>()
            && let Some(streams) = made.get().made_streams()
        {
            return Self::new(py, Pipeline::stream_of(interleave_from(streams, cycle_length)));
        }
        let datasets: Vec<PyRef<'_, Self>> = datasets.extract()?;
        let streams: Vec<_> = datasets.iter().map(|ds| ds.0.dataset()).collect();
        Self::over_all(py, Pipeline::stream_of(interleave(streams, cycle_length)), datasets)
    }

    fn seed(&self, py: Python<'_>, seed: u32) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.seed(seed)))
    }

    #[pyo3(signature = (window_size, seed=None))]
    fn window_shuffle(&self, py: Python<'_>, window_size: usize, seed: Option<u32>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.window_shuffle(window_size, seed)))
    }

    /// Repeats the whole stream. Every epoch has equal elements.
    ///
    /// Args:
    ///     num_epochs (int | None): Number of epochs; endless by default.
    ///
    /// Raises:
    ///     ConfigError: `num_epochs` is 0.
    #[pyo3(signature = (num_epochs=None))]
    fn repeat(&self, py: Python<'_>, num_epochs: Option<u64>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.repeat(num_epochs)))
    }

    fn limit(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.limit(count)))
    }

    fn take(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        self.limit(py, count)
    }

    fn skip(&self, py: Python<'_>, count: u64) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.skip(count)))
    }

    /// Adds its number in the stream to each element. A resume continues the count.
    ///
    /// Args:
    ///     start (int): The first number.
    ///     column (str): The column for the number, in elements that are dicts. Without it, an element becomes a tuple
    ///         of the number and the element.
    ///
    /// Raises:
    ///     DataError: A column of this name exists.
    #[pyo3(signature = (start=0, *, column=None))]
    fn enumerate(&self, py: Python<'_>, start: i64, column: Option<String>) -> PyResult<Self> {
        let Some(column) = column else { return Self::new(py, self.0.enumerate(start)) };
        let arguments = arguments::named([("column", Tree::Str(column)), ("start", Tree::Int(start))]);
        detached(py, || self.0.native("enumerate", arguments)).or_raise(py).map(Self::of)
    }

    #[pyo3(signature = (limit=None, consecutive=None))]
    fn skip_bad_records(&self, py: Python<'_>, limit: Option<u64>, consecutive: Option<u64>) -> PyResult<Self> {
        Self::new(py, self.0.skip_bad_records(BadRecords::Skip { limit, consecutive }))
    }

    fn cache(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, behind!(&self.0, ds => ds.cache()))
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

    /// Applies a function to a state and every element, in order.
    ///
    /// The state is part of the checkpoint, so it must be JSON: numbers, text, lists, dicts, `None`. A tuple becomes a
    /// list. Each pass starts with `initial`. The process that reads the stream calls the function.
    ///
    /// Args:
    ///     transform (Callable[[Any, Any], tuple[Any, Any]]): A function of the state and the element, which returns the
    ///         next state and the new element. Or an object with a method `scan`.
    ///     initial (Any): The state at the start of a pass.
    ///
    /// Raises:
    ///     TypeError: The transform is neither, or a state is not JSON.
    fn scan(&self, py: Python<'_>, transform: &Bound<'_, PyAny>, initial: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "scan")?;
        Self::calling(py, self.0.scan(function.clone(), json::of_python(initial)?), function)
    }

    /// Keeps the elements for which a function returns true, or for which a native condition on a column holds.
    ///
    /// Filters directly after a dataset with random access share their thresholds: the last given thresholds apply to
    /// their joint count, which is part of the state.
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
    ///     warn (float | None): The dropped share of 1000 consecutive elements that logs a warning under the name
    ///         `gristmill`, at most once a minute; `None` for never. Only with a function.
    ///     thresholds (float | None): `raise`, given as `**{"raise": 0.99}`: the share that is an error; no share by
    ///         default. Only with a function.
    ///
    /// Raises:
    ///     ConfigError: An argument is invalid, or a column does not exist.
    ///     DataError: A larger share of elements was dropped than `raise`.
    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, transform=None, /, *, column=None, min_length=None, max_length=None, min=None, max=None, equals=None, warn=0.9, **thresholds)")]
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

    /// Drops elements that are `None`.
    fn drop_none(&self, py: Python<'_>) -> PyResult<Self> {
        Self::new(py, self.0.drop_none())
    }

    /// Replaces every element by the elements that a function returns: none, one or many.
    ///
    /// Args:
    ///     transform (Callable[[Any], Iterable[Any]] | FlatMap): A function of an element that returns elements, or an
    ///         object with a method `flat_map`.
    fn flat_map(&self, py: Python<'_>, transform: &Bound<'_, PyAny>) -> PyResult<Self> {
        let function = Callable::new(transform, "flat_map")?;
        Self::calling(py, self.0.flat_map(function.clone()), function)
    }

    /// Stacks consecutive elements into batches.
    ///
    /// The leaves of dicts, lists, tuples and dataclasses become NumPy arrays with an additional dimension. Text of
    /// native sources becomes a list.
    ///
    /// Args:
    ///     batch_size (int): Number of elements in a batch.
    ///     drop_remainder (bool): Drops the last elements if they do not fill a batch, as `remainder="drop"` does. The
    ///         name is Grain's.
    ///     batch_fn (Callable[[list[Any]], Any] | None): Makes the batch of a list of elements. Without it, elements
    ///         are stacked.
    ///     remainder (Literal["keep", "drop", "pad"] | None): Policy for the last elements if they do not fill a batch:
    ///         `"keep"`, the default, makes a smaller batch; `"drop"` drops them; `"pad"` fills the batch up to
    ///         `batch_size`. With `"pad"`, elements are dicts of arrays, and every batch has a column of bools that is
    ///         true in real rows.
    ///     pad_value (float | None): The number in every padded array, 0 by default; only with `remainder="pad"`.
    ///     mask (str | None): The name of the column of bools, `batch_mask` by default.
    ///
    /// Raises:
    ///     ConfigError: `batch_size` is 0, or options contradict each other.
    ///     ValueError: Elements differ in structure or shape. The message names the place.
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

    #[pyo3(signature = (options=None, worker_init_fn=None, **kwargs))]
    fn _mp_prefetch(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyAny>>,
        worker_init_fn: Option<&Bound<'_, PyAny>>,
        kwargs: Option<&Keywords<'_>>,
    ) -> PyResult<Self> {
        super::check_workers(py, options, worker_init_fn, kwargs)?;
        Self::new(py, self.0.cut())
    }

    #[pyo3(signature = (**options))]
    fn _loader<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Keywords<'py>>,
    ) -> PyResult<Bound<'py, PyDatasetIterator>> {
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

    /// Whether the next elementwise stage runs inside lanes, also after `mp_prefetch`.
    #[getter]
    fn _in_lanes(&self) -> bool {
        self.0.in_lanes()
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        super::generic(cls, item)
    }

    /// Called for an unknown attribute.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        Err(missing(slf.as_any(), name))
    }

    /// Makes the keys by which several hosts plan this pipeline: the filters' results and the lengths of elements.
    ///
    /// Each record is evaluated once, on all cores. Existing keys are kept, and an interrupted run is continued.
    ///
    /// Args:
    ///     folder (str | PathLike[str]): The folder for the key files, one for each source.
    ///
    /// Returns:
    ///     A dict for each source: `file`, `source`, `records`, `elements`, `bytes`, and `was_there`.
    ///
    /// Raises:
    ///     ConfigError: Keys are useless here: indices determine the rows of a host, or a stage depends on more than
    ///         keys.
    fn make_keys<'py>(slf: &Bound<'py, Self>, folder: PathBuf) -> PyResult<Vec<Bound<'py, PyDict>>> {
        keys::make(slf.as_any(), &slf.get().0.dataset(), folder)
    }

    /// Returns the records of a batch of a logged run, as `gristmill which` prints them. Plans at most 1,000 batches.
    ///
    /// Args:
    ///     log (str | PathLike[str]): The run log, which `loader(ledger=…)` writes.
    ///     step (int): The number of the global batch, from 0.
    ///     keys (str | PathLike[str] | None): The folder of key files. Without keys, records are evaluated if necessary.
    ///
    /// Returns:
    ///     A dict with `step`, `planned_from`, and `rows` as in `DatasetIterator.lineage`.
    #[pyo3(signature = (log, step, *, keys=None))]
    fn which<'py>(
        slf: &Bound<'py, Self>,
        log: PathBuf,
        step: u64,
        keys: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Logged::open(slf.as_any(), log, keys)?.which(slf.py(), &slf.get().0.dataset(), step)
    }

    /// Plans a logged run again and compares it with its log, as `gristmill audit` does.
    ///
    /// Args:
    ///     log (str | PathLike[str]): The run log, which `loader(ledger=…)` writes.
    ///     keys (str | PathLike[str] | None): The folder of key files. Without keys, records are evaluated if necessary.
    ///
    /// Returns:
    ///     The numbers of planned `batches`, and of compared `positions` and `digests`.
    #[pyo3(signature = (log, *, keys=None))]
    fn audit<'py>(slf: &Bound<'py, Self>, log: PathBuf, keys: Option<PathBuf>) -> PyResult<Bound<'py, PyAny>> {
        Logged::open(slf.as_any(), log, keys)?.audit(slf.py(), &slf.get().0.dataset())
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
        format!("<gristmill.IterDataset {}>", crate::dataset::chain(&*self.0.stage()))
    }
}
