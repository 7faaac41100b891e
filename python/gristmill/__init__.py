"""Loads training data: composable, deterministic, checkpointable pipelines with a report of where the time goes.

A `MapDataset` has random access and no state. An `IterDataset` is an ordered stream with a small state. Names and
meanings follow Grain if Grain has them. Execution never changes the data: a pipeline yields equal elements with any
number of threads, and after a resume on any machine.
"""

from importlib import import_module as _import_module

# Python takes the first thread that imports `threading` for the main thread, and waits for it at exit. Importing the
# module here keeps a thread of gristmill from becoming that thread.
_import_module("threading")

from gristmill._errors import BadRecord as BadRecord
from gristmill._errors import ConfigError as ConfigError
from gristmill._errors import DataError as DataError
from gristmill._errors import Error as Error
from gristmill._errors import IoError as IoError
from gristmill._errors import StateError as StateError
from gristmill._errors import UnsupportedError as UnsupportedError
from gristmill._errors import WorkerError as WorkerError
from gristmill._gristmill import Cost as Cost
from gristmill._gristmill import DatasetIterator as DatasetIterator
from gristmill._gristmill import Deal as Deal
from gristmill._gristmill import Explanation as Explanation
from gristmill._gristmill import IterDataset as IterDataset
from gristmill._gristmill import MapDataset as MapDataset
from gristmill._gristmill import Metrics as Metrics
from gristmill._gristmill import Part as Part
from gristmill._gristmill import Report as Report
from gristmill._gristmill import Sink as Sink
from gristmill._gristmill import SinkReport as SinkReport
from gristmill._gristmill import __version__ as __version__
from gristmill._recipe import in_range as _in_range
from gristmill._recipe import record as _record

_record(MapDataset)
_record(IterDataset)

# `typing` is not imported: its import takes longer than all other imports together.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gristmill import arrow as arrow
    from gristmill import jax as jax
    from gristmill import notebook as notebook
    from gristmill import orbax as orbax
    from gristmill import orders as orders
    from gristmill import otel as otel
    from gristmill import ray as ray
    from gristmill import torch as torch
    from gristmill._gristmill import sink as sink
    from gristmill._gristmill import store_options as store_options
    from gristmill._measure import Measured as Measured
    from gristmill._measure import measure as measure
    from gristmill._metrics import metrics as metrics
    from gristmill._options import MpOptions as MpOptions
    from gristmill._progress import progress as progress
    from gristmill._schedule import Schedule as Schedule
    from gristmill._schedule import schedule as schedule
    from gristmill._spec import ArraySpec as ArraySpec
    from gristmill._tokenizers import tokenizer_json as tokenizer_json
else:
    from gristmill._gristmill import sink as _sink
    from gristmill._gristmill import store_options as _store_options

    sink = _in_range(_sink)
    store_options = _in_range(_store_options)

    # Slow imports, and modules that require an optional framework: imported on first use.
    _LATER = {
        "ArraySpec": "gristmill._spec",
        "Measured": "gristmill._measure",
        "MpOptions": "gristmill._options",
        "Schedule": "gristmill._schedule",
        "measure": "gristmill._measure",
        "metrics": "gristmill._metrics",
        "progress": "gristmill._progress",
        "schedule": "gristmill._schedule",
        "tokenizer_json": "gristmill._tokenizers",
    }
    _MODULES = ("arrow", "jax", "notebook", "orbax", "orders", "otel", "ray", "torch")

    def __getattr__(name: str) -> object:
        """Imports the attribute or module on first use."""
        if name in _LATER:
            return getattr(_import_module(_LATER[name]), name)
        if name in _MODULES:
            return _import_module(f"gristmill.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Returns the public names, including names that are not imported yet."""
        known = {name for name in globals() if not name.startswith("_") and name != "TYPE_CHECKING"}
        return sorted(known | {"__version__", *_LATER, *_MODULES})
