"""Grain's interface on gristmill: `import gristmill.compat.grain as grain`, or `install()` and then `import grain`.

Names, orders, random numbers and states are Grain's. Intended differences are documented at each method. The main
difference: the data does not depend on the number of workers.
"""

from gristmill.compat.grain import checkpoint as checkpoint
from gristmill.compat.grain import constants as constants
from gristmill.compat.grain import experimental as experimental
from gristmill.compat.grain import monitoring as monitoring
from gristmill.compat.grain import multiprocessing as multiprocessing
from gristmill.compat.grain import proto as proto
from gristmill.compat.grain import python as python
from gristmill.compat.grain import samplers as samplers
from gristmill.compat.grain import sharding as sharding
from gristmill.compat.grain import sources as sources
from gristmill.compat.grain import transforms as transforms
from gristmill.compat.grain._config import config as config
from gristmill.compat.grain._data_loader import DataLoader as DataLoader
from gristmill.compat.grain._data_loader import DataLoaderIterator as DataLoaderIterator
from gristmill.compat.grain._dataset import IterDataset as IterDataset
from gristmill.compat.grain._dataset import MapDataset as MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator as DatasetIterator
from gristmill.compat.grain._install import install as install
from gristmill.compat.grain._load import load as load
from gristmill.compat.grain._options import MultiprocessingOptions as MultiprocessingOptions
from gristmill.compat.grain._options import ReadOptions as ReadOptions
from gristmill.compat.grain._record import Record as Record
from gristmill.compat.grain._record import RecordMetadata as RecordMetadata

# Version of Grain whose interface this package implements.
__version__ = "0.2.18"
__version_info__ = (0, 2, 18)
