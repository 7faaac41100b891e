"""Grain's `sources`."""

from gristmill.compat.grain._base import RandomAccessDataSource as RandomAccessDataSource
from gristmill.compat.grain._data_sources import ArrayRecordDataSource as ArrayRecordDataSource
from gristmill.compat.grain._data_sources import RangeDataSource as RangeDataSource
from gristmill.compat.grain._data_sources import SharedMemoryDataSource as SharedMemoryDataSource
