"""Feeds training jobs: composable, deterministic, checkpointable data loading that says where the time goes.

A `MapDataset` has random access and no state; an `IterDataset` is an ordered stream with a small one. Names and meanings
are Grain's wherever Grain has them. Execution never changes the data: the same elements for any number of threads, and
after a resume anywhere.
"""

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
from gristmill._gristmill import Report as Report
from gristmill._gristmill import __version__ as __version__
