//! `Part`: rows of every batch, and its notations.

use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::error::OrRaise;
use super::item::Item;
use super::{element, error};
use crate::element::Array;
use crate::error::{Error, Result};
use crate::part::{Part, RowBatch, RowNumbers};

/// Rows of every global batch that a consumer takes: an equal share, or listed rows.
///
/// Consumers that compute on equal rows, such as tensor- and pipeline-parallel peers, have equal parts.
#[pyclass(name = "Part", module = "gristmill", frozen, eq, hash)]
#[derive(Debug)]
pub(crate) struct PyPart {
    part: Part,
    /// Makes the connection to the other hosts, for `guard="auto"`. It is not compared.
    guard: Option<Py<PyAny>>,
}

impl PartialEq for PyPart {
    fn eq(&self, other: &Self) -> bool {
        self.part == other.part
    }
}

impl Eq for PyPart {}

impl Hash for PyPart {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.part.hash(state);
    }
}

impl PyPart {
    pub(super) fn of(part: Part) -> Self {
        Self { part, guard: None }
    }
}

from_as!(Part => PyPart, |part| Self::of(part));

#[pymethods]
impl PyPart {
    #[new]
    fn new(py: Python<'_>, index: usize, count: usize) -> PyResult<Self> {
        let part = Part::of(index, count);
        part.check().map(|()| Self::of(part)).or_raise(py)
    }

    /// Takes rows by number, in this order: the rows of a sharded array that the devices of a process hold.
    ///
    /// Args:
    ///     rows (Sequence[int]): The numbers.
    ///     global_batch (int): Rows of every global batch.
    ///
    /// Raises:
    ///     ConfigError: The list is empty, or a number is not below `global_batch`.
    #[staticmethod]
    fn listed(py: Python<'_>, rows: Vec<usize>, global_batch: usize) -> PyResult<Self> {
        Part::listed(rows, global_batch).map(Self::of).or_raise(py)
    }

    /// Returns the numbers of its rows in a global batch.
    ///
    /// Args:
    ///     global_batch (int): Rows of the batch.
    ///
    /// Raises:
    ///     ConfigError: The batch is not divisible, or the part was listed for another size.
    fn rows(&self, py: Python<'_>, global_batch: usize) -> PyResult<Vec<usize>> {
        self.part.rows(global_batch).map(|rows| rows.iter().collect()).or_raise(py)
    }

    /// Returns an equal part with a connection to the other hosts.
    fn _guarded_by(&self, make: Py<PyAny>) -> Self {
        Self { part: self.part.clone(), guard: Some(make) }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, class) = (slf.py(), slf.get_type().into_any());
        if let Some(share) = slf.get().part.as_share() {
            Ok((class, share.into_pyobject(py)?))
        } else {
            let (rows, batch) = slf.get().part.as_listed().unwrap_or_default();
            Ok((class.getattr("listed")?, (rows.to_vec(), batch).into_pyobject(py)?))
        }
    }

    fn __repr__(&self) -> String {
        match (self.part.as_share(), self.part.as_listed()) {
            (None, Some((rows, batch))) => format!("gristmill.Part.listed({rows:?}, {batch})"),
            (share, _) => {
                let (index, count) = share.unwrap_or_default();
                format!("gristmill.Part({index}, {count})")
            }
        }
    }
}

/// A part in any notation: a `Part`, `(3, 64)` or `"3/64"`.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) part: Part,
    /// The maker of the connection to the other hosts, if the part has one.
    pub(super) guard: Option<Py<PyAny>>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Given {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        if let Ok(part) = given.cast::<PyPart>() {
            let PyPart { part, guard } = part.get();
            return Ok(Self { part: part.clone(), guard: guard.as_ref().map(|guard| guard.clone_ref(py)) });
        }
        let part = if let Ok(text) = given.cast::<PyString>() {
            text.to_str()?.parse()
        } else {
            let (index, count) = given
                .extract::<(usize, usize)>()
                .map_err(|_| PyTypeError::new_err("a part is a gristmill.Part, (index, count) or \"index/count\""))?;
            let part = Part::of(index, count);
            part.check().map(|()| part)
        };
        part.map(|part| Self { part, guard: None }).or_raise(py)
    }
}

impl RowBatch for Item {
    fn num_rows(&self) -> Result<usize> {
        match self {
            Self::Element(element) => element.num_rows(),
            Self::Array(array) => array.shape().first().copied().ok_or_else(no_rows),
            Self::Int(_) | Self::Float(_) => Err(no_rows()),
            Self::Tuple(items) => {
                let mut all = items.iter().map(RowBatch::num_rows);
                let first = all.next().ok_or_else(no_rows)??;
                match all.find(|rows| !matches!(rows, Ok(rows) if *rows == first)) {
                    None => Ok(first),
                    Some(Err(error)) => Err(error),
                    Some(Ok(other)) => Err(Error::data(format!("parts of a batch have {first} and {other} rows"))),
                }
            }
            Self::Tree(_) | Self::Python(_) | Self::Apart(_) => Python::attach(|py| {
                let object = self.clone().into_python(py)?;
                py.import("gristmill._rows")?.call_method1("num_rows", (object,))?.extract()
            })
            .map_err(error::caught),
        }
    }

    fn take_rows(self, rows: &RowNumbers) -> Result<Self> {
        match self {
            Self::Element(element) => element.take_rows(rows).map(Self::Element),
            Self::Array(array) => {
                let taken = match rows.as_range() {
                    Some(range) => array.rows(range),
                    None => array.rows_at(&rows.iter().collect::<Vec<_>>()),
                };
                taken
                    .map(|array| Self::Array(Box::new(array)))
                    .ok_or_else(|| Error::data("a row of a batch does not exist"))
            }
            Self::Tuple(items) => {
                items.into_iter().map(|item| item.take_rows(rows)).collect::<Result<_>>().map(Self::Tuple)
            }
            Self::Int(_) | Self::Float(_) => Err(no_rows()),
            Self::Tree(_) | Self::Python(_) | Self::Apart(_) => Python::attach(|py| {
                let object = self.into_python(py)?;
                let numbers: Vec<usize> = rows.iter().collect();
                let range = rows.as_range().map(|range| (range.start, range.end));
                let taken = py.import("gristmill._rows")?.call_method1("take", (object, numbers, range))?;
                Ok(Self::from_python(taken))
            })
            .map_err(error::caught),
        }
    }

    fn column(&self, is_it: &mut dyn FnMut(&str) -> bool) -> Result<Option<(String, Array)>> {
        match self {
            Self::Element(element) => element.column(is_it),
            Self::Int(_) | Self::Float(_) | Self::Array(_) => Ok(None),
            Self::Tuple(items) => items.iter().find_map(|item| item.column(is_it).transpose()).transpose(),
            Self::Tree(_) | Self::Python(_) | Self::Apart(_) => Python::attach(|py| {
                let object = self.clone().into_python(py).map_err(error::caught)?;
                let Some((name, leaf)) = leaf(&object, is_it).map_err(error::caught)? else { return Ok(None) };
                let array = element::shared_from_object(&leaf)?.array(&name)?.clone();
                Ok(Some((name, array)))
            }),
        }
    }
}

/// Returns the first leaf whose name satisfies `is_it`, and a dict of it.
fn leaf<'py>(
    batch: &Bound<'py, PyAny>,
    is_it: &mut dyn FnMut(&str) -> bool,
) -> PyResult<Option<(String, Bound<'py, PyAny>)>> {
    let leaves = batch.py().import("gristmill._rows")?.call_method1("leaves", (batch,))?;
    let leaves: Vec<(String, Bound<'py, PyAny>)> = leaves.extract()?;
    let Some((name, leaf)) = leaves.into_iter().find(|(name, _)| is_it(name)) else { return Ok(None) };
    let named = PyDict::new(batch.py());
    named.set_item(&name, leaf)?;
    Ok(Some((name, named.into_any())))
}

#[cold]
fn no_rows() -> Error {
    Error::data("a batch has no rows, and a part consists of rows of batches").help("end it with `batch`")
}
