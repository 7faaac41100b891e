"""Descriptions of elements: shapes, dtypes and types."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gristmill import _errors
from gristmill._gristmill import IterDataset, MapDataset
from gristmill._tree import registered


@dataclasses.dataclass(frozen=True, slots=True)
class ArraySpec:
    """The shape and dtype of an array: `int32[8, 1024]`.

    Args:
        shape: Length of each dimension.
        dtype: Type of the numbers: a NumPy dtype, or the dtype of a JAX or PyTorch array.
    """

    shape: tuple[int, ...]
    dtype: Any

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    def __repr__(self) -> str:
        return f"<gristmill.ArraySpec {self}>"


ArraySpec.__module__ = "gristmill"


def element_spec(dataset: MapDataset | IterDataset) -> Any:
    """Returns a tree with the structure of the first element of `dataset`; leaves are array specs and types."""
    for element in dataset.loader(workers=False):
        return spec(element)
    raise _errors.make("config", "the dataset has no element that could be described", None)


def spec(tree: Any) -> Any:
    """Returns a tree with the structure of `tree`; leaves are array specs and types."""
    if _is(tree, Mapping):
        return {name: spec(value) for name, value in tree.items()}
    if _is(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(spec(part) for part in tree))
    if _is(tree, list, tuple):
        parts = [spec(part) for part in tree]
        alike = parts[:1] if all(part == parts[0] for part in parts) else parts
        return alike if _is(tree, list) else tuple(alike)
    if dataclasses.is_dataclass(tree) and not _is(tree, type):
        return {field.name: spec(getattr(tree, field.name)) for field in dataclasses.fields(tree)}
    node = registered(tree)
    if node is not None:
        return node[1]([spec(part) for part in node[0]])
    leaf: Any = tree
    if _is(leaf, np.generic) or not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        kind: type[Any] = leaf.__class__
        return kind
    return ArraySpec(tuple(leaf.shape), leaf.dtype)


def _is(tree: Any, *kinds: type[Any]) -> bool:
    return isinstance(tree, kinds)


def first(dataset: MapDataset | IterDataset) -> tuple[list[tuple[str, str]], int] | None:
    """Returns the path and the kind of each leaf of the first element, and its bytes in arrays, text and bytes."""
    for element in dataset.loader(workers=False):
        return list(_leaves("", spec(element))), _nbytes(element)
    return None


def _leaves(path: str, tree: Any) -> Iterator[tuple[str, str]]:
    if _is(tree, Mapping):
        parts = tree.items()
    elif _is(tree, list, tuple):
        parts = enumerate(tree)
    else:
        yield path, tree.__name__ if _is(tree, type) else str(tree)
        return
    for name, part in parts:
        yield from _leaves(f"{path}/{name}" if path else str(name), part)


def _nbytes(tree: Any) -> int:
    if _is(tree, Mapping):
        return sum(_nbytes(part) for part in tree.values())
    if _is(tree, list, tuple):
        return sum(_nbytes(part) for part in tree)
    return len(tree) if _is(tree, str, bytes) else int(getattr(tree, "nbytes", 0))
