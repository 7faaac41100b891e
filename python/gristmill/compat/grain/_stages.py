"""Base classes of the datasets that the core evaluates."""

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import gristmill as gm
from gristmill.compat.grain._base import DatasetOptions
from gristmill.compat.grain._dataset import Dataset, IterDataset, MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._lazy import make
from gristmill.compat.grain._plan import Plan

T = TypeVar("T")


class CoreMapDataset(MapDataset[T]):
    """A `MapDataset` that the core evaluates. Subclasses build the core dataset in `_build`."""

    _cached: gm.MapDataset | None = None

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        raise NotImplementedError

    def _core(self) -> gm.MapDataset:
        if type(self).__getitem__ is not CoreMapDataset.__getitem__:
            return super()._core()
        if self._cached is None:
            self._cached = self._build([parent._core() for parent in self.parents])
        return self._cached

    def __len__(self) -> int:
        return len(self._core())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        if index < 0:
            length = len(self)
            if not length:
                raise IndexError("an empty dataset has no elements")
            index %= length
        return self._core()[index]


class CoreIterDataset(IterDataset[T]):
    """An `IterDataset` that the core evaluates."""

    def state_at(self, index: int) -> dict[str, Any]:
        """Returns the state before element `index`. Raises if the index does not determine the state."""
        raise NotImplementedError(f"set_next_index is not supported for {self}")

    def index_of(self, state: dict[str, Any]) -> int:
        """Returns the index of the first element after `state`."""
        raise NotImplementedError(f"get_next_index is not supported for {self}")

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        """Returns `core`, the parent's core dataset, followed by this stage."""
        raise NotImplementedError

    def _build(self, plan: Plan) -> gm.IterDataset:
        """Builds the core dataset. Overridden by stages that have no single parent or that use the plan."""
        return self._behind(self._parent._core(plan))

    def _core(self, plan: Plan) -> gm.IterDataset:
        if type(self).__iter__ is not CoreIterDataset.__iter__:
            return super()._core(plan)
        return self._build(plan)

    # Module and class of the passes. Programs check the class for some stages.
    _PASS = ("_iterator", "CoreIterator")

    def __iter__(self) -> "DatasetIterator[T]":
        return cast("DatasetIterator[T]", make(*self._PASS, self))


class SameElements(Dataset):
    """A stage whose elements are elements of its parent, unchanged."""

    @property
    def _element_spec(self) -> Any:
        return self._parents[0]._element_spec


class InStep(CoreIterDataset[T]):
    """A stream with one element per element of its parent, without a separate position."""

    def state_at(self, index: int) -> dict[str, Any]:
        return cast("dict[str, Any]", self._parent.state_at(index))

    def index_of(self, state: dict[str, Any]) -> int:
        return cast(int, self._parent.index_of(state))


class Counting(InStep[T]):
    """An `InStep` stream that also counts the elements of its parent."""

    def state_at(self, index: int) -> dict[str, Any]:
        return {"parent": super().state_at(index), "counter": index}

    def index_of(self, state: dict[str, Any]) -> int:
        return super().index_of(state["parent"])


class WithOptionsIterDataset(SameElements, InStep[T]):
    """Options for the whole pipeline before this stage."""

    def __init__(self, parent: IterDataset[T], options: DatasetOptions) -> None:
        super().__init__(parent)
        self.options = options

    def _build(self, plan: Plan) -> gm.IterDataset:
        plan.options = plan.options.merge(self.options)
        return super()._build(plan)

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core

    def __str__(self) -> str:
        return f"WithOptionsIterDataset(options={self.options})"
