//! Python arguments as the tree that a pipeline file is parsed into.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::dataset::iter::FilterThresholds;
use crate::spec::by_name::main_argument;
use crate::spec::node::{Field, MAX_DEPTH, Node, Tree};
use crate::spec::registry::source_entries;

/// The arguments of a native source or stage. One may stand without its name: the main one, as in a pipeline file.
pub(crate) fn tree(name: &str, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Tree> {
    let mut named = if let Some(kwargs) = kwargs { fields(kwargs, 0)? } else { Vec::new() };
    let main = main_argument(name);
    match (args.len(), main) {
        (0, _) => {}
        (1, Some(main)) => {
            if named.iter().any(|field| field.key == main) {
                return Err(PyTypeError::new_err(format!("{name}() got multiple values for argument '{main}'")));
            }
            named.insert(0, field(main.to_owned(), value(&args.get_item(0)?, 0)?));
        }
        (1, None) if named.is_empty() && args.get_item(0)?.is_instance_of::<PyDict>() => {
            return value(&args.get_item(0)?, 0);
        }
        (given, main) => {
            let most = usize::from(main.is_some());
            let text = format!("{name}() takes at most {most} argument without a name, and {given} were given");
            return Err(PyTypeError::new_err(text));
        }
    }
    Ok(Tree::Map(named))
}

/// Whether the elements of a source are `bytes`: records of bytes, without a column for them and without features.
pub(crate) fn is_bytes(source: &str, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    let mut entries = source_entries();
    if !entries.any(|entry| entry.name == source && entry.about.all().iter().any(|arg| arg.name == "examples")) {
        return Ok(false);
    }
    for name in ["field", "examples", "sequence_examples"] {
        let given = kwargs.map_or(Ok(None), |kwargs| kwargs.get_item(name))?;
        // `examples=False` is no declaration.
        if given.is_some_and(|given| !given.is_none() && !given.is(PyBool::new(given.py(), false))) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn field(key: String, value: Tree) -> Field {
    Field { key, line: 0, value: Node::new(value, 0, 0) }
}

fn fields(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Vec<Field>> {
    dict.iter().map(|(key, given)| Ok(field(key.extract()?, value(&given, depth + 1)?))).collect()
}

/// Converts an argument or an option.
pub(super) fn value(given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Tree> {
    if depth > MAX_DEPTH {
        return Err(PyValueError::new_err(format!("an argument nested deeper than {MAX_DEPTH}")));
    }
    if given.is_none() {
        return Ok(Tree::Null);
    }
    if let Ok(truth) = given.cast::<PyBool>() {
        return Ok(Tree::Bool(truth.is_true()));
    }
    if let Ok(text) = given.cast::<PyString>() {
        // Python keeps bytes of paths that are no UTF-8 as surrogates, which no other text has.
        let text = text.to_str().map_err(|_| {
            PyValueError::new_err(format!("{text:?} is not UTF-8: rename the file, or open it and pass its contents"))
        })?;
        return Ok(Tree::Str(text.to_owned()));
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        return Ok(Tree::Map(fields(dict, depth)?));
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let items = given.try_iter()?.map(|item| Ok(Node::new(value(&item?, depth + 1)?, 0, 0)));
        return Ok(Tree::List(items.collect::<PyResult<_>>()?));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Tree::Float(given.extract()?));
    }
    if given.hasattr("__index__")? {
        return Ok(Tree::Int(given.extract()?));
    }
    if given.hasattr("__fspath__")? {
        return value(&given.call_method0("__fspath__")?, depth);
    }
    let kind = given.get_type().fully_qualified_name()?;
    Err(PyTypeError::new_err(format!("a number, text, a path, or a list or dict of these is needed, got {kind}")))
}

/// The thresholds of a filter among its keyword arguments, and the others.
pub(super) fn thresholds<'py>(
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Option<FilterThresholds>, Option<Bound<'py, PyDict>>)> {
    let Some(kwargs) = kwargs else { return Ok((None, None)) };
    let others = kwargs.copy()?;
    let mut thresholds = FilterThresholds::default();
    for (name, threshold) in [("warn", &mut thresholds.warn), ("raise", &mut thresholds.raise)] {
        if let Some(given) = kwargs.get_item(name)? {
            *threshold = given.extract()?;
            others.del_item(name)?;
        }
    }
    let given = others.len() < kwargs.len();
    Ok((given.then_some(thresholds), Some(others)))
}

/// Arguments that are known by name.
pub(super) fn named(arguments: impl IntoIterator<Item = (&'static str, Tree)>) -> Tree {
    Tree::Map(arguments.into_iter().map(|(key, value)| field(key.to_owned(), value)).collect())
}
