"""Feeds training jobs: composable, deterministic, checkpointable data loading that says where the time goes.

A `MapDataset` has random access and no state; an `IterDataset` is an ordered stream with a small one. Names and meanings
are Grain's wherever Grain has them. Execution never changes the data: the same elements for any number of threads, and
after a resume anywhere.
"""

# Whoever imports `threading` first is the main thread to Python, for whose end a program waits: none of ours may be the first.
import threading as _threading  # noqa: F401
from importlib import import_module as _import_module

from gristmill._errors import ConfigError as ConfigError
from gristmill._errors import DataError as DataError
from gristmill._errors import Error as Error
from gristmill._errors import IoError as IoError
from gristmill._errors import StateError as StateError
from gristmill._errors import UnsupportedError as UnsupportedError
from gristmill._errors import WorkerError as WorkerError
from gristmill._gristmill import DatasetIterator as DatasetIterator
from gristmill._gristmill import IterDataset as IterDataset
from gristmill._gristmill import MapDataset as MapDataset
from gristmill._gristmill import Metrics as Metrics
from gristmill._gristmill import Report as Report
from gristmill._gristmill import Sink as Sink
from gristmill._gristmill import SinkReport as SinkReport
from gristmill._gristmill import __version__ as __version__
from gristmill._gristmill import sink as sink
from gristmill._recipe import record as _record

_record(MapDataset)
_record(IterDataset)

# Not by `typing`, whose import takes longer than that of all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from gristmill import arrow as arrow
    from gristmill import jax as jax
    from gristmill import orbax as orbax
    from gristmill import torch as torch
    from gristmill._measure import Measured as Measured
    from gristmill._measure import measure as measure
    from gristmill._options import MpOptions as MpOptions
    from gristmill._progress import progress as progress
    from gristmill._store import store_options as store_options
else:

    def __getattr__(name: str) -> object:
        """Imports when it is first used what takes its time, and what needs a framework that not everybody has."""
        if name == "MpOptions":
            return _import_module("gristmill._options").MpOptions
        if name in ("Measured", "measure"):
            return getattr(_import_module("gristmill._measure"), name)
        if name == "progress":
            return _import_module("gristmill._progress").progress
        if name == "store_options":
            return _import_module("gristmill._store").store_options
        if name in ("arrow", "jax", "orbax", "torch"):
            return _import_module(f"gristmill.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """The public names, those that are imported when they are first used as well."""
        late = ("Measured", "MpOptions", "arrow", "jax", "measure", "orbax", "progress", "store_options", "torch")
        hidden = ("TYPE_CHECKING",)
        return sorted({*(name for name in globals() if name not in hidden), *late})
