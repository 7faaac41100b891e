"""Datasets without parents."""

from collections.abc import Sequence
from typing import Any

import gristmill as gm
from gristmill.compat.grain._base import ShapeDtypeStruct, spec_of
from gristmill.compat.grain._data_sources import native
from gristmill.compat.grain._dataset import INFINITE
from gristmill.compat.grain._options import ReadOptions
from gristmill.compat.grain._sharding import ShardOptions, even_split
from gristmill.compat.grain._stages import CoreMapDataset

import numpy as np


class _Unsized:
    """A source without a length, which is read by index only."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __len__(self) -> int:
        return INFINITE

    def __getitem__(self, index: int) -> Any:
        return self._source[index]


def _part_of(length: int, sl: slice, sequential_slice: bool) -> tuple[int, int]:
    # Grain raises this type of error.
    assert sequential_slice, "Only sequential slicing is supported."
    return even_split(length, ShardOptions(shard_index=sl.start, shard_count=sl.step))


class SourceMapDataset(CoreMapDataset[Any]):
    """Records of any object with `__len__` and `__getitem__`."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source
        # The undivided dataset, after `set_slice`.
        self._whole: SourceMapDataset | None = None

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        try:
            length = len(self._source)
        except TypeError:
            return gm.MapDataset.source(_Unsized(self._source))
        records = native(self._source)
        if records is not None:
            return records
        if length > 0:
            return gm.MapDataset.source(self._source)
        return gm.MapDataset.source(())

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Keeps only part `sl.start` of `sl.step` consecutive parts."""
        if self._whole is None:
            self._whole = SourceMapDataset(self._source)
        start, stop = _part_of(len(self._whole), sl, sequential_slice)
        self._source, self._cached = self._whole[start:stop], None

    def __len__(self) -> int:
        return len(self._source)

    def __str__(self) -> str:
        return f"SourceMapDataset(source={type(self._source).__name__})"

    @property
    def _element_spec(self) -> Any:
        from gristmill.compat.grain import _tree_lib

        if len(self._source) == 0:
            raise ValueError("the spec of the elements of an empty source is not known")
        return _tree_lib.map_structure(spec_of, self._source[0])


class RangeMapDataset(CoreMapDataset[int]):
    """Integers of a Python `range`."""

    def __init__(self, start: int, stop: int | None = None, step: int = 1) -> None:
        super().__init__()
        self.start, self.stop = (0, start) if stop is None else (start, stop)
        self.step = step
        self._whole = range(self.start, self.stop, self.step)
        self._length = len(self._whole)

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Keeps only part `sl.start` of `sl.step` consecutive parts."""
        start, stop = _part_of(len(self._whole), sl, sequential_slice)
        numbers = self._whole[start:stop]
        self.start, self.stop, self._length, self._cached = numbers.start, numbers.stop, len(numbers), None

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return gm.MapDataset.range(self.start, self.stop, self.step)

    def __len__(self) -> int:
        return self._length

    def _default_read_options(self) -> ReadOptions:
        return ReadOptions(prefetch_buffer_size=0)

    def _read_options(self) -> ReadOptions:
        return ReadOptions(num_threads=0, prefetch_buffer_size=0)

    @property
    def _element_spec(self) -> Any:
        return ShapeDtypeStruct(shape=(), dtype=np.dtype(np.int64))

    def __str__(self) -> str:
        return f"RangeMapDataset(start={self.start}, stop={self.stop}, step={self.step})"
