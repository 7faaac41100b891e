"""Stages that make batches."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import gristmill as gm
from gristmill._tree import stack
from gristmill.compat.grain import _shared_memory as shared_memory_array
from gristmill.compat.grain import _tree_lib as tree_lib
from gristmill.compat.grain._base import ShapeDtypeStruct, SupportsSharedMemoryOutput
from gristmill.compat.grain._dataset import Dataset, IterDataset, MapDataset
from gristmill.compat.grain._stages import CoreIterDataset, CoreMapDataset

BatchFn = Callable[[Sequence[Any]], Any]


def make_batch(values: Sequence[Any], *, output_to_shared_memory: bool = False) -> Any:
    """Returns a tree like each of `values` with a leading dimension per leaf, optionally in shared memory."""
    if not values:
        raise ValueError("Cannot batch 0 values. Please file a bug.")
    try:
        batch = stack(list(values))
        return tree_lib.map_structure(shared_memory_array.shared, batch) if output_to_shared_memory else batch
    except ValueError as error:
        specs = [tree_lib.spec_like(value) for value in values]
        raise ValueError(f"Expected all input elements to have the same structure but got:\n{specs}") from error


def batch_and_pad(values: Sequence[Any], *, batch_size: int, pad_value: Any = 0) -> Any:
    """Returns a batch of `batch_size` rows, padded with `pad_value` if there are fewer `values`.

    `pad_value` is a number, or a tree of numbers like the elements.
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
    batch_fn = batch_fn.func if isinstance(batch_fn, functools.partial) else batch_fn
    if batch_fn is not make_batch:
        if not hasattr(batch_fn, "output_spec"):
            raise ValueError(f"{batch_fn} does not implement `output_spec`, and so the spec of its batches is not known")
        return batch_fn.output_spec(spec, batch_size=batch_size, drop_remainder=drop_remainder)
    rows = batch_size if drop_remainder else None
    return tree_lib.map_structure(lambda leaf: ShapeDtypeStruct((rows, *leaf.shape), leaf.dtype), spec)


class _Batches(Dataset):
    """Code shared by the batch stages of both kinds of dataset."""

    def _take(self, batch_size: int, drop_remainder: bool, batch_fn: BatchFn | None) -> None:
        if batch_size <= 0:
            raise ValueError(f"batch_size must be positive, got {batch_size}.")
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder
        self._given_fn = batch_fn

    @property
    def _batch_fn(self) -> BatchFn:
        return self._given_fn or make_batch

    def enable_shared_memory_output(self) -> None:
        """Makes batches of `SharedMemoryArray`s from now on, to which other processes attach by name.

        Worker processes do not need this: their output is in shared memory already. A custom batch function is switched
        to shared memory as well if it supports it.
        """
        if self._given_fn is None:
            self._given_fn = functools.partial(make_batch, output_to_shared_memory=True)
        elif isinstance(self._given_fn, SupportsSharedMemoryOutput):
            self._given_fn.enable_shared_memory_output()

    @property
    def _element_spec(self) -> Any:
        return _batch_spec(self._parents[0]._element_spec, self._batch_size, self._drop_remainder, self._batch_fn)

    def __str__(self) -> str:
        return f"{type(self).__name__}(batch_size={self._batch_size}, drop_remainder={self._drop_remainder})"


class BatchMapDataset(_Batches, CoreMapDataset[Any]):
    """Batches of consecutive elements of an epoch."""

    def __init__(
        self, parent: MapDataset[Any], batch_size: int, drop_remainder: bool = False, batch_fn: BatchFn | None = None
    ) -> None:
        super().__init__(parent)
        self._take(batch_size, drop_remainder, batch_fn)
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

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        # A function may return `None` for an element, and a batch keeps the slot of each element.
        return parents[0].slots().batch(self._batch_size, self._drop_remainder, self._given_fn)

    def enable_shared_memory_output(self) -> None:
        super().enable_shared_memory_output()
        self._cached = None


class BatchIterDataset(_Batches, CoreIterDataset[Any]):
    """Batches of consecutive elements of a stream."""

    def __init__(
        self, parent: IterDataset[Any], batch_size: int, drop_remainder: bool = False, batch_fn: BatchFn | None = None
    ) -> None:
        super().__init__(parent)
        self._take(batch_size, drop_remainder, batch_fn)

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.batch(self._batch_size, self._drop_remainder, self._given_fn)

    def state_at(self, index: int) -> dict[str, Any]:
        return cast("dict[str, Any]", self._parent.state_at(index * self._batch_size))

    def index_of(self, state: dict[str, Any]) -> int:
        return -(-cast(int, self._parent.index_of(state)) // self._batch_size)
