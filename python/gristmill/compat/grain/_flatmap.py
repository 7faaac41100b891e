"""Stages that yield several elements per element."""

from collections.abc import Sequence
from typing import Any

import gristmill as gm
from gristmill.compat.grain import _transforms
from gristmill.compat.grain._dataset import INFINITE, IterDataset, MapDataset
from gristmill.compat.grain._stages import CoreIterDataset, CoreMapDataset


class FlatMapMapDataset(CoreMapDataset[Any]):
    """The results of a transform for each element, in `max_fan_out` slots; unused slots are empty."""

    def __init__(self, parent: MapDataset[Any], transform: _transforms.FlatMap) -> None:
        super().__init__(parent)
        self._transform = transform

    def __len__(self) -> int:
        return min(self._transform.max_fan_out * len(self._parent), INFINITE)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return parents[0].flat_map(self._transform.flat_map, self._transform.max_fan_out)

    def __str__(self) -> str:
        return f"FlatMapMapDataset(transform={_transforms.get_pretty_transform_name(self._transform)})"


class FlatMapIterDataset(CoreIterDataset[Any]):
    """The results of a transform for each element of a stream."""

    def __init__(self, parent: IterDataset[Any], transform: _transforms.FlatMap) -> None:
        super().__init__(parent)
        self._transform = transform

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.flat_map(self._transform.flat_map)

    def __str__(self) -> str:
        return f"FlatMapIterDataset(transform={_transforms.get_pretty_transform_name(self._transform)})"
