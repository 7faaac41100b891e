//! Errors for unknown attributes of datasets, with the name of the intended method.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use super::iter_dataset::PyIterDataset;
use super::map_dataset::PyMapDataset;

const AHEAD: &str = "elements are read ahead by loader(threads=…), or in other processes by mp_prefetch()";

const TOKENISE: &str = "tokenise(column, tokenizer=…)";

/// Methods of other libraries or of streams, and their equivalents with random access.
const OF_MAPS: &[(&str, &str)] = &[
    ("prefetch", AHEAD),
    ("tokenize", TOKENISE),
    ("take", "the first elements are a slice: ds[:count]"),
    ("limit", "the first elements are a slice: ds[:count]"),
    ("skip", "all but the first elements are a slice: ds[count:]"),
    (
        "enumerate",
        "map_with_index() calls a function with it, and to_iter_dataset().enumerate() puts it beside the element",
    ),
];

/// Methods of other libraries or of `MapDataset`, and their equivalents in streams.
const OF_STREAMS: &[(&str, &str)] = &[
    ("prefetch", AHEAD),
    ("tokenize", TOKENISE),
    ("shard", "a stream is read from its start: shard the MapDataset before to_iter_dataset(), or assign its files"),
];

/// Makes the `AttributeError` for `name` of `dataset`, with an equivalent method if it is known.
#[cold]
pub(super) fn missing(dataset: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let (py, kind) = (dataset.py(), dataset.get_type());
    let is_map = dataset.is_instance_of::<PyMapDataset>();
    let known = if is_map { OF_MAPS } else { OF_STREAMS };
    let other = if is_map { py.get_type::<PyIterDataset>() } else { py.get_type::<PyMapDataset>() };
    let hint = match known.iter().find(|(known, _)| *known == name) {
        Some((_, hint)) => format!(": {hint}"),
        None if name.starts_with('_') || !other.hasattr(name).unwrap_or(false) => String::new(),
        None if is_map => format!(": a stream has it: to_iter_dataset().{name}(…)"),
        None => format!(": a MapDataset has it: call {name}(…) before to_iter_dataset()"),
    };
    let kind = kind.name().map_or_else(|_| String::from("dataset"), |name| name.to_string());
    let error = PyAttributeError::new_err(format!("{kind:?} object has no attribute {name:?}{hint}").replace('"', "'"));
    // Python suggests similar names by these attributes. Without them, the error has no suggestion.
    let _ = error.value(py).setattr("name", name);
    let _ = error.value(py).setattr("obj", dataset);
    error
}
