"""Batches."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gristmill as gm
from gristmill._tree import stack
from gristmill.compat.grain import _tree_lib as tree_lib
from gristmill.compat.grain._base import ShapeDtypeStruct
from gristmill.compat.grain._dataset import CoreIterDataset, CoreMapDataset, IterDataset, MapDataset, Plan

BatchFn = Callable[[Sequence[Any]], Any]


def make_batch(values: Sequence[Any]) -> Any:
    """One tree like each of `values`, every leaf with a leading dimension."""
    if not values:
        raise ValueError("Cannot batch 0 values. Please file a bug.")
    try:
        return stack(list(values))
    except ValueError as error:
        specs = [tree_lib.spec_like(value) for value in values]
        raise ValueError(f"Expected all input elements to have the same structure but got:\n{specs}") from error


def batch_and_pad(values: Sequence[Any], *, batch_size: int, pad_value: Any = 0) -> Any:
    """A batch of `batch_size`, whatever the number of `values`: the rows that are missing are `pad_value`.

    `pad_value` is one number, or a tree of numbers like the elements.
    """
    if batch_size < len(values):
        raise ValueError(f"batch_size is {batch_size}, and there are {len(values)} values")
    batch = make_batch(values)
    missing = batch_size - len(values)
    if missing == 0:
        return batch

    def pad(leaf: Any, value: Any = pad_value) -> Any:
        leaf = np.asarray(leaf)
        rows = np.full((missing, *leaf.shape[1:]), value, leaf.dtype)
        return np.concatenate([leaf, rows])

    if isinstance(pad_value, (int, float, complex, np.generic)):
        return tree_lib.map_structure(pad, batch)
    return tree_lib.map_structure(pad, batch, pad_value)


def _batch_spec(spec: Any, batch_size: int, drop_remainder: bool, batch_fn: Any) -> Any:
    if batch_fn is not None:
        if not hasattr(batch_fn, "output_spec"):
            raise ValueError(f"{batch_fn} does not implement `output_spec`, and so the spec of its batches is not known")
        return batch_fn.output_spec(spec, batch_size=batch_size, drop_remainder=drop_remainder)
    rows = batch_size if drop_remainder else None
    return tree_lib.map_structure(lambda leaf: ShapeDtypeStruct((rows, *leaf.shape), leaf.dtype), spec)


def _positive(batch_size: int) -> int:
    if batch_size <= 0:
        raise ValueError(f"batch_size must be positive, got {batch_size}.")
    return batch_size


class BatchMapDataset(CoreMapDataset[Any]):
    """Batches of consecutive elements of an epoch."""

    def __init__(
        self,
        parent: MapDataset[Any],
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: BatchFn | None = None,
    ) -> None:
        super().__init__(parent)
        self._batch_size = _positive(batch_size)
        self._drop_remainder = drop_remainder
        self._given_fn = batch_fn
        self._batch_fn = batch_fn or make_batch
        self._refuse_holes(parent)
        rows = len(parent)
        self._length = rows // batch_size if drop_remainder else -(-rows // batch_size)

    def _refuse_holes(self, parent: MapDataset[Any]) -> None:
        from gristmill.compat.grain import _flatmap, _functions

        for kind, name in (
            (_functions.FilterMapDataset, "MapDataset.filter"),
            (_flatmap.FlatMapMapDataset, "FlatMapMapDataset"),
        ):
            if isinstance(parent, kind):
                raise ValueError(
                    f"`MapDataset.batch` can not follow `{name}` because `{name}` can discard elements. "
                    "Convert `MapDataset` to `IterDataset` with `to_iter_dataset()` before calling `batch`."
                )
        for above in parent.parents:
            self._refuse_holes(above)

    def __len__(self) -> int:
        return self._length

    def _core(self, dense: bool = False) -> gm.MapDataset:
        # An empty slot has no place in a batch.
        return super()._core(True)

    def _build(self, parents: Sequence[gm.MapDataset], dense: bool) -> gm.MapDataset:
        return parents[0].batch(self._batch_size, self._drop_remainder, self._given_fn)

    @property
    def _element_spec(self) -> Any:
        return _batch_spec(self._parent._element_spec, self._batch_size, self._drop_remainder, self._given_fn)

    def __str__(self) -> str:
        return f"BatchMapDataset(batch_size={self._batch_size}, drop_remainder={self._drop_remainder})"


class BatchIterDataset(CoreIterDataset[Any]):
    """Batches of consecutive elements of a stream."""

    def __init__(
        self,
        parent: IterDataset[Any],
        batch_size: int,
        drop_remainder: bool = False,
        batch_fn: BatchFn | None = None,
    ) -> None:
        super().__init__(parent)
        self._batch_size = _positive(batch_size)
        self._drop_remainder = drop_remainder
        self._given_fn = batch_fn
        self._batch_fn = batch_fn or make_batch

    def _build(self, plan: Plan) -> gm.IterDataset:
        core: gm.IterDataset = self._parent._core(plan)
        return core.batch(self._batch_size, self._drop_remainder, self._given_fn)

    def state_at(self, index: int) -> dict[str, Any]:
        state: dict[str, Any] = self._parent.state_at(index * self._batch_size)
        return state

    def index_of(self, state: dict[str, Any]) -> int:
        elements: int = self._parent.index_of(state)
        return -(-elements // self._batch_size)

    @property
    def _element_spec(self) -> Any:
        return _batch_spec(self._parent._element_spec, self._batch_size, self._drop_remainder, self._given_fn)

    def __str__(self) -> str:
        return f"BatchIterDataset(batch_size={self._batch_size}, drop_remainder={self._drop_remainder})"
