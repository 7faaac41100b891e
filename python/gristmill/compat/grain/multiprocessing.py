"""Grain's `multiprocessing`."""

from gristmill.compat.grain._options import MultiprocessingOptions as MultiprocessingOptions
from gristmill.compat.grain._shared_memory import SharedMemoryArray as SharedMemoryArray
from gristmill.compat.grain._shared_memory import SharedMemoryArrayMetadata as SharedMemoryArrayMetadata
