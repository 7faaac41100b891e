"""Datasets combined into tuples."""

from collections.abc import Sequence
from typing import Any

import gristmill as gm
from gristmill.compat.grain._dataset import IterDataset, MapDataset
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._stages import CoreIterDataset, CoreMapDataset


class ZipMapDataset(CoreMapDataset[Any]):
    """Tuples of the elements of datasets of equal length, with `None` for a dropped element."""

    def __init__(self, parents: Sequence[MapDataset[Any]]) -> None:
        super().__init__(parents)
        if not self.parents:
            raise ValueError("At least one parent dataset is required.")
        lengths = [len(parent) for parent in self.parents]
        if len(set(lengths)) > 1:
            raise ValueError(f"All parent datasets should have equal length, got {lengths}")

    def __len__(self) -> int:
        return len(self.parents[0])

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return gm.MapDataset.zip([parent.slots() for parent in parents])

    @property
    def _element_spec(self) -> Any:
        return tuple(parent._element_spec for parent in self.parents)


class ZipIterDataset(CoreIterDataset[Any]):
    """Tuples of an element of each stream."""

    def __init__(self, parents: Sequence[IterDataset[Any]], *, strict: bool = True) -> None:
        super().__init__(parents)
        if not self.parents:
            raise ValueError("At least one parent dataset is required.")
        self._strict = strict

    def _build(self, plan: Plan) -> gm.IterDataset:
        return gm.IterDataset.zip([parent._core(plan) for parent in self.parents], strict=self._strict)

    @property
    def _element_spec(self) -> Any:
        return tuple(parent._element_spec for parent in self.parents)
