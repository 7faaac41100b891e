"""Grain's older module that contains all names."""

from typing import TYPE_CHECKING, Any

from gristmill.compat.grain import checkpoint as _checkpoint
from gristmill.compat.grain import experimental as experimental
from gristmill.compat.grain._base import DatasetSelectionMap as DatasetSelectionMap
from gristmill.compat.grain._base import RandomAccessDataSource as RandomAccessDataSource
from gristmill.compat.grain._config import config as config
from gristmill.compat.grain._data_loader import DataLoader as DataLoader
from gristmill.compat.grain._data_loader import DataLoaderIterator as PyGrainDatasetIterator
from gristmill.compat.grain._data_sources import ArrayRecordDataSource as ArrayRecordDataSource
from gristmill.compat.grain._data_sources import RangeDataSource as RangeDataSource
from gristmill.compat.grain._data_sources import SharedMemoryDataSource as InMemoryDataSource
from gristmill.compat.grain._dataset import IterDataset as IterDataset
from gristmill.compat.grain._dataset import MapDataset as MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator as DatasetIterator
from gristmill.compat.grain._load import load as load
from gristmill.compat.grain._operations import BatchOperation as BatchOperation
from gristmill.compat.grain._operations import FilterOperation as FilterOperation
from gristmill.compat.grain._operations import MapOperation as MapOperation
from gristmill.compat.grain._operations import Operation as Operation
from gristmill.compat.grain._operations import RandomMapOperation as RandomMapOperation
from gristmill.compat.grain._options import MultiprocessingOptions as MultiprocessingOptions
from gristmill.compat.grain._options import ReadOptions as ReadOptions
from gristmill.compat.grain._record import Record as Record
from gristmill.compat.grain._record import RecordMetadata as RecordMetadata
from gristmill.compat.grain._samplers import IndexSampler as IndexSampler
from gristmill.compat.grain._samplers import Sampler as Sampler
from gristmill.compat.grain._samplers import SequentialSampler as SequentialSampler
from gristmill.compat.grain._shared_memory import SharedMemoryArray as SharedMemoryArray
from gristmill.compat.grain._sharding import NoSharding as NoSharding
from gristmill.compat.grain._sharding import ShardByJaxProcess as ShardByJaxProcess
from gristmill.compat.grain._sharding import ShardOptions as ShardOptions
from gristmill.compat.grain._transforms import Batch as Batch
from gristmill.compat.grain._transforms import Filter as FilterTransform
from gristmill.compat.grain._transforms import Map as MapTransform
from gristmill.compat.grain._transforms import MapWithIndex as MapWithIndexTransform
from gristmill.compat.grain._transforms import RandomMap as RandomMapTransform
from gristmill.compat.grain._transforms import Transformation as Transformation
from gristmill.compat.grain._transforms import Transformations as Transformations
from gristmill.compat.grain.checkpoint import CheckpointHandler as PyGrainCheckpointHandler
from gristmill.compat.grain.constants import DATASET_INDEX as DATASET_INDEX
from gristmill.compat.grain.constants import EPOCH as EPOCH
from gristmill.compat.grain.constants import INDEX as INDEX
from gristmill.compat.grain.constants import META_FEATURES as META_FEATURES
from gristmill.compat.grain.constants import RECORD as RECORD
from gristmill.compat.grain.constants import RECORD_KEY as RECORD_KEY
from gristmill.compat.grain.constants import SEED as SEED

if TYPE_CHECKING:
    from gristmill.orbax import CheckpointRestore as PyGrainCheckpointRestore
    from gristmill.orbax import CheckpointSave as PyGrainCheckpointSave


def __getattr__(name: str) -> Any:
    if name not in ("PyGrainCheckpointSave", "PyGrainCheckpointRestore"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_checkpoint, name.removeprefix("PyGrain"))
