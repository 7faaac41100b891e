//! Shards, written in the background.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::element;
use super::error::{self, OrRaise};
use super::interpreter::detached;
use super::json;
use super::report::as_dict;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::fork::Origin;
use crate::sink::{Sink, SinkFormat, SinkOptions, SinkReport};
use crate::source::TokenType;
use crate::sync::Locked;

/// A folder of shards, into which elements are written: see `sink`. A write returns at once, unless the memory
/// limit is reached.
///
/// The sink is a context manager. Leaving it finishes the sink. After an exception, the sink stops at the last
/// whole shard.
#[pyclass(name = "Sink", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PySink {
    state: Mutex<State>,
    /// A fork must not take the lock, because its holder may not exist there.
    origin: Origin,
}

#[derive(Debug)]
enum State {
    Open(Box<Sink>),
    /// Finished, with the report if it is known.
    Closed(Option<Box<SinkReport>>),
}

/// Report of a sink: `str` returns a text, `as_dict` its numbers.
#[pyclass(name = "SinkReport", module = "gristmill", frozen)]
#[derive(Debug)]
pub(crate) struct PySinkReport(SinkReport);

/// Opens a folder, or makes it, to write shards of a format.
///
/// In formats with columns, all shards have equal columns: those in the first 1,024 records, or in the first 8 MiB.
///
/// Args:
///     folder (str | PathLike[str]): The folder, or its URL.
///     format (str): The format of the shards: `jsonl`, `parquet`, `array_record`, `tfrecord`, `arrow`,
///         `hugging_face`, `webdataset`, `mds`, `npy`, `safetensors`, `tokens` or `megatron`.
///     compression (str | None): `none`, `zstd:LEVEL`, `gzip:LEVEL`, `brotli:QUALITY`, `lz4` or `snappy`, if the
///         format supports it.
///     shard_bytes (int | None): Bytes of values in memory after which a shard ends; 256 MiB by default.
///     shard_records (int | None): Records after which a shard ends; no limit by default.
///     group (int | None): Records that are encoded together, in formats with groups.
///     prefix (str | None): The beginning of the names of shards, `prefix-00000`, …; `shard` by default.
///     threads (int | None): Threads that encode and compress, each a shard at a time; all cores by default.
///     memory (int | None): Limit of bytes of elements that wait; 1 GiB by default.
///     resume (bool): Continues a folder with shards. Without it, such a folder is refused.
///     column (str | None): The column of token ids, for token files.
///     token_type (Literal["uint16", "uint32"] | None): The type of ids in token files.
///     bare (bool): Writes token files without a header.
///     byte_stream_split (bool): Splits floats by bytes, for Parquet of activations and features, which makes such
///         files a tenth smaller.
///     schema (dict[str, Any] | None): Declares some or all columns: `{"score": "float64", "ids": "int32[_]",
///         "tags": {"list": "text"}}` for Parquet, Arrow and Hugging Face, `{"score": "float64", "image": "jpeg"}`
///         in the encodings of MDS, `{"x": "float32[2, 3]"}` for NumPy and safetensors. Numbers of another type are
///         converted: integers must fit, floats are rounded.
///     sequences (Sequence[str] | None): The columns that are sequences in TFRecord and ArrayRecord. Records are
///         `tf.train.SequenceExample`s then, with a step for each item of a list or row of an array.
///
/// Raises:
///     ConfigError: The options contradict each other or the folder.
///     StateError: The folder was begun with other options.
#[pyfunction]
#[pyo3(signature = (
    folder, format="jsonl", *, compression=None, shard_bytes=None, shard_records=None, group=None, prefix=None, threads=None,
    memory=None, resume=false, column=None, token_type=None, bare=false, byte_stream_split=false, schema=None,
    sequences=None
))]
#[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
pub(crate) fn sink(
    py: Python<'_>,
    folder: PathBuf,
    format: &str,
    compression: Option<&str>,
    shard_bytes: Option<u64>,
    shard_records: Option<u64>,
    group: Option<u64>,
    prefix: Option<String>,
    threads: Option<usize>,
    memory: Option<u64>,
    resume: bool,
    column: Option<String>,
    token_type: Option<&str>,
    bare: bool,
    byte_stream_split: bool,
    schema: Option<&Bound<'_, PyDict>>,
    sequences: Option<Vec<String>>,
) -> PyResult<PySink> {
    let schema = schema.map(|schema| schema_of(schema)).transpose()?;
    let utf_8 = folder.to_str().is_some();
    let options = move || -> Result<SinkOptions> {
        if !utf_8 {
            let text = "the name of the folder is not UTF-8, and no source could open its files";
            return Err(Error::config(text).help("choose another name"));
        }
        let mut options =
            Sink::options(format.parse::<SinkFormat>()?).resume(resume).bare(bare).byte_stream_split(byte_stream_split);
        if let Some(compression) = compression {
            options = options.compression(compression.parse()?);
        }
        if let Some(token) = token_type {
            options = options.token_type(token_type_of(token)?);
        }
        options = with(options, shard_bytes, SinkOptions::shard_bytes);
        options = with(options, shard_records, SinkOptions::shard_records);
        options = with(options, group, SinkOptions::group);
        options = with(options, prefix, SinkOptions::prefix);
        options = with(options, threads, SinkOptions::threads);
        options = with(options, memory, SinkOptions::memory);
        options = with(options, schema.map(|text| text.parse()).transpose()?, SinkOptions::schema);
        options = with(options, sequences, SinkOptions::sequences);
        Ok(with(options, column, SinkOptions::column))
    };
    let options = options().or_raise(py)?;
    let sink = detached(py, || options.open(folder)).or_raise(py)?;
    Ok(PySink { state: Mutex::new(State::Open(Box::new(sink))), origin: Origin::here() })
}

fn with<T>(options: SinkOptions, value: Option<T>, set: impl FnOnce(SinkOptions, T) -> SinkOptions) -> SinkOptions {
    if let Some(value) = value { set(options, value) } else { options }
}

/// The columns as JSON, in their order.
fn schema_of(schema: &Bound<'_, PyDict>) -> PyResult<String> {
    schema.py().import("json")?.call_method1("dumps", (schema,))?.extract()
}

fn token_type_of(name: &str) -> Result<TokenType> {
    match name {
        "uint16" => Ok(TokenType::U16),
        "uint32" => Ok(TokenType::U32),
        _ => Err(Error::config(format!("`{name}` is not a type of token ids: use uint16 or uint32"))),
    }
}

impl PySink {
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.origin.check("this sink")?;
        Ok(self.state.locked())
    }

    /// Calls a function with the sink, without the interpreter.
    fn open<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Sink) -> Result<T> + Send) -> PyResult<T> {
        let done = detached(py, || match &mut *self.lock()? {
            State::Open(sink) => work(sink),
            State::Closed(_) => Err(Error::config("the sink is closed")),
        });
        done.or_raise(py)
    }

    /// Ends the sink, once.
    fn close(&self, py: Python<'_>, end: impl FnOnce(Sink) -> Result<SinkReport> + Send) -> PyResult<PySinkReport> {
        let closed = detached(py, || {
            let mut state = self.lock()?;
            match std::mem::replace(&mut *state, State::Closed(None)) {
                State::Open(sink) => {
                    let report = end(*sink)?;
                    *state = State::Closed(Some(Box::new(report.clone())));
                    Ok(report)
                }
                State::Closed(report) => {
                    *state = State::Closed(report.clone());
                    report.map(|report| *report).ok_or_else(|| Error::config("the sink is closed"))
                }
            }
        });
        closed.map(PySinkReport).or_raise(py)
    }

    fn put(&self, py: Python<'_>, element: Element, state: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(state) = state else { return self.open(py, |sink| sink.write(element)) };
        // It is asked for at the end of a shard alone, and takes the interpreter for it.
        let state = state.clone().unbind();
        self.open(py, move |sink| sink.write_at(element, || Python::attach(|py| json_of(state.bind(py))).map(Some)))
    }
}

/// Converts a state to JSON: a dict, or the result of a function.
fn json_of(state: &Bound<'_, PyAny>) -> Result<serde_json::Value> {
    let state = if state.is_callable() { state.call0() } else { Ok(state.clone()) };
    state.and_then(|state| json::of_python(&state)).map_err(error::caught)
}

#[pymethods]
impl PySink {
    /// Writes an element.
    ///
    /// Writable arrays are copied. A read-only view of the memory of another object, such as an array of JAX, keeps the
    /// object, and nothing may write to its memory.
    ///
    /// Args:
    ///     element (Mapping[str, Any]): A dict of arrays, numbers, text and bytes.
    ///     state (Any): A value of JSON, or a function that returns it. The state of the last record of a shard is
    ///         kept: see `Sink.state`.
    ///
    /// Raises:
    ///     DataError: This or an earlier element cannot be written. The message names the record.
    ///     IoError: The folder is not writable.
    #[pyo3(signature = (element, *, state=None))]
    fn write(&self, py: Python<'_>, element: &Bound<'_, PyAny>, state: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let element = element::shared_from_object(element).or_raise(py)?;
        self.put(py, element, state)
    }

    /// Writes each row of a batch.
    ///
    /// Args:
    ///     batch (Mapping[str, Any]): A dict of arrays, whose first dimension is the row.
    ///
    /// Raises:
    ///     DataError: This or an earlier element cannot be written. The message names the record.
    ///     IoError: The folder is not writable.
    fn write_batch(&self, py: Python<'_>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let batch = element::shared_from_object(batch).or_raise(py)?;
        self.open(py, |sink| sink.write_batch(&batch))
    }

    /// Writes all elements of an iterator.
    ///
    /// Args:
    ///     elements (Iterable[Mapping[str, Any]]): The elements. An iterator with `get_state` and `set_state`, such as
    ///         a loader, continues at the end of the folder.
    ///
    /// Raises:
    ///     DataError: This or an earlier element cannot be written. The message names the record.
    ///     IoError: The folder is not writable.
    ///     ValueError: The folder has records, and their end in the elements is unknown.
    fn write_all(&self, py: Python<'_>, elements: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.complete(py)? {
            return Ok(());
        }
        let elements = elements.try_iter()?;
        let get_state = elements.getattr_opt("get_state")?;
        match (self.state(py)?, elements.getattr_opt("set_state")?) {
            (Some(state), Some(set)) => drop(set.call1((state,))?),
            _ if self.records(py)? > 0 => {
                return Err(PyValueError::new_err(
                    "the folder holds records, but their end among these elements is unknown: write them with a state, or \
                     begin at sink.records",
                ));
            }
            _ => {}
        }
        for element in &elements {
            self.write(py, &element?, get_state.as_ref())?;
        }
        Ok(())
    }

    /// Number of records, including the records of earlier runs. A resumed job continues with this record.
    #[getter]
    fn records(&self, py: Python<'_>) -> PyResult<u64> {
        self.open(py, |sink| Ok(sink.records()))
    }

    /// The state of the last record of earlier runs, or `None`.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.open(py, |sink| Ok(sink.state().cloned()))?;
        state.map(|state| as_dict(py, &state)).transpose()
    }

    /// Whether an earlier run has finished the folder.
    #[getter]
    fn complete(&self, py: Python<'_>) -> PyResult<bool> {
        self.open(py, |sink| Ok(sink.is_complete()))
    }

    /// Writes the remaining elements, waits until the disk has all data, and marks the folder as complete.
    fn finish(&self, py: Python<'_>) -> PyResult<PySinkReport> {
        self.close(py, Sink::finish)
    }

    /// Waits until the disk has all whole shards, and ends the sink.
    fn stop(&self, py: Python<'_>) -> PyResult<PySinkReport> {
        self.close(py, Sink::stop)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        _exc_value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        // In a fork the parent's is not to be ended.
        let is_open = detached(py, || self.lock().is_ok_and(|state| matches!(&*state, State::Open(_))));
        match (is_open, exc_type) {
            (true, None) => self.finish(py).map(drop),
            (true, Some(_)) => {
                // The raised exception has priority.
                let _ = self.stop(py);
                Ok(())
            }
            (false, _) => Ok(()),
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a sink belongs to its process"))
    }

    fn __repr__(&self) -> String {
        // A writing thread may need the interpreter.
        let Ok(state) = self.state.try_lock() else { return "<gristmill.Sink, writing>".to_owned() };
        match &*state {
            State::Open(sink) => format!("<gristmill.Sink of {}: {} records>", sink.format(), sink.records()),
            State::Closed(_) => "<gristmill.Sink, closed>".to_owned(),
        }
    }
}

#[pymethods]
impl PySinkReport {
    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<gristmill.SinkReport: {}>", self.0.verdict)
    }

    /// Returns every number of the report. `wait_share` is the share of time in which writes waited for memory.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        as_dict(py, &self.0)
    }
}
