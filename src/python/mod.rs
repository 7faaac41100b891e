//! The extension module behind the Python package: a thin face over the crate, under the same names.
//!
//! An element is an [`Item`](item::Item): a native element before the first Python function, a Python object after
//! it. Native stages are those of pipeline files, with equal arguments. The interpreter is released around slow work,
//! and every thread attaches for its Python calls.

mod apart;
mod arguments;
mod around;
#[cfg(feature = "columns")]
mod arrow;
mod batching;
mod buffer;
mod callable;
#[cfg(feature = "cli")]
mod cli;
mod computed;
mod convert;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod crossing;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod data_memory;
mod dataset;
mod deal;
mod described;
mod dlpack;
mod element;
mod error;
#[cfg(feature = "cli")]
mod explain;
#[cfg(all(feature = "workers", target_os = "linux"))]
mod far;
mod guard;
mod how;
mod index_shuffle;
mod interpreter;
mod item;
mod iter_dataset;
mod iterator;
mod json;
mod keys;
mod ledger;
mod loader_options;
mod map_dataset;
mod metrics;
mod missing;
mod mixing;
mod native;
mod numbers;
mod owned;
mod owner;
mod part;
mod pipeline;
mod process;
mod random;
mod recipe;
mod report;
mod shared_docs;
mod sink;
mod source;
mod stream_source;
#[cfg(feature = "tf_record")]
mod tf_record;
mod tokenizers;
mod tree;
mod warnings;
mod with_options;
#[cfg_attr(not(all(feature = "workers", target_os = "linux")), path = "no_workers.rs")]
mod workers;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use self::callable::Callable;

/// Returns the function if it is the only argument of a method. Otherwise, the arguments are those of a native stage.
fn function_argument(
    method: &str,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<Callable>> {
    match (args.len(), kwargs.is_none_or(|kwargs| kwargs.is_empty())) {
        (0, false) => Ok(None),
        (1, true) => Callable::new(&args.get_item(0)?, method).map(Some),
        _ => Err(PyTypeError::new_err(format!("{method}() takes one function, or only keyword arguments"))),
    }
}

/// Makes `MapDataset[int]`, a type for annotations.
fn generic<'py>(class: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    class.py().import("types")?.getattr("GenericAlias")?.call1((class, item))
}

/// Refuses invalid options of `mp_prefetch` in its call. Workers call it without options.
fn check_workers(
    py: Python<'_>,
    options: Option<&Bound<'_, PyAny>>,
    worker_init_fn: Option<&Bound<'_, PyAny>>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    if let Some(function) = worker_init_fn
        && !function.is_callable()
    {
        let kind = function.get_type().fully_qualified_name()?;
        return Err(PyTypeError::new_err(format!("worker_init_fn is a function of two numbers, got {kind}")));
    }
    if options.is_some() || kwargs.is_some() {
        py.import("gristmill._options")?.call_method("given", (options,), kwargs)?;
    }
    Ok(())
}

/// The native half of the package.
#[pymodule]
fn _gristmill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::check_main(module.py())?;
    crate::exec::thread::surround(interpreter::around_thread);
    #[cfg(all(feature = "workers", target_os = "linux"))]
    {
        crate::error::pack_by(error::pack);
        crate::wire::also(crossing::CROSSINGS);
        module.add_function(wrap_pyfunction!(workers::_serve, module)?)?;
        module.add_function(wrap_pyfunction!(workers::_end_with_parent, module)?)?;
        module.add_class::<far::PyOffice>()?;
        module.add_class::<far::PyEvaluator>()?;
        module.add_class::<far::PyPooled>()?;
    }
    convert::plan_items();
    warnings::listen();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("__optimised__", !cfg!(debug_assertions))?;
    module.add_class::<map_dataset::PyMapDataset>()?;
    module.add_class::<iter_dataset::PyIterDataset>()?;
    described::add_to(module)?;
    module.add_class::<iterator::PyDatasetIterator>()?;
    module.add_class::<part::PyPart>()?;
    module.add_class::<deal::PyCost>()?;
    module.add_class::<deal::PyDeal>()?;
    #[cfg(feature = "cli")]
    module.add_function(wrap_pyfunction!(cli::cli, module)?)?;
    #[cfg(feature = "columns")]
    {
        module.add_class::<arrow::PyRecordBatch>()?;
        module.add_class::<arrow::PyRecordBatchStream>()?;
    }
    #[cfg(feature = "tf_record")]
    module.add_class::<tf_record::PyTfRecordReader>()?;
    module.add_class::<dlpack::Lease>()?;
    loader_options::add_to(module)?;
    module.add_function(wrap_pyfunction!(index_shuffle::index_shuffle, module)?)?;
    #[cfg(feature = "cli")]
    module.add_class::<explain::PyExplanation>()?;
    module.add_class::<metrics::PyMetrics>()?;
    module.add_class::<sink::PySink>()?;
    module.add_class::<sink::PySinkReport>()?;
    module.add_function(wrap_pyfunction!(sink::sink, module)?)?;
    module.add_function(wrap_pyfunction!(tokenizers::_tokenizer_json, module)?)?;
    module.add_function(wrap_pyfunction!(tokenizers::_ranks_json, module)?)?;
    module.add_function(wrap_pyfunction!(tokenizers::_hard_texts, module)?)?;
    module.add_function(wrap_pyfunction!(report::_metric_families, module)?)?;
    module.add_function(wrap_pyfunction!(report::_metric_values, module)?)?;
    module.add_function(wrap_pyfunction!(iterator::_waited_for_device, module)?)?;
    module.add_class::<report::PyReport>()
}
