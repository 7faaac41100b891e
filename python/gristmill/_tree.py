"""Batches of trees: dicts, lists, tuples, dataclasses and classes registered with JAX. NumPy stacks their leaves."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np


_INT64 = 1 << 63
# Bytes: the alignment that native stages use, and the smallest array for which alignment pays off.
_ALIGNMENT, _LARGE = 64, 1 << 16
# Types that are trees or leaves without JAX.
_KNOWN = (Mapping, list, tuple, np.ndarray, np.generic, int, float, str, bytes)


def stack(items: Sequence[Any], path: str = "") -> Any:
    """Returns a tree like each of `items`, with a new leading dimension per leaf. `path` locates it in the element."""
    first: Any = items[0]
    if first is None and all(item is None for item in items):
        return None
    if isinstance(first, Mapping):
        return _stack_mappings(items, path)
    if isinstance(first, (list, tuple)):
        return _stack_sequences(items, path)
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        _same_type(items, path)
        names = [field.name for field in dataclasses.fields(first)]
        columns = {name: stack([getattr(item, name) for item in items], _below(path, name)) for name in names}
        return dataclasses.replace(first, **columns)
    nodes = [registered(item) for item in items] if registered(first) else []
    if nodes:
        return _stack_registered(items, nodes, path)
    if type(first) is float and all(type(item) is float for item in items):
        return np.array(items)
    if type(first) is int and all(type(item) is int and -_INT64 <= item < _INT64 for item in items):
        return np.array(items, np.int64)
    return _stack_arrays([np.asarray(item) for item in items], path)


def walk(tree: Any, convert: Callable[[str, Any], Any], path: str = "", *, of_jax: bool = True) -> Any:
    """Returns a tree like `tree` in which `convert` has replaced each leaf, given its path and value.

    A list of text or numbers is a leaf. With `of_jax`, classes registered with JAX are nodes; without, they are leaves.
    """
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return {key: walk(part, convert, _below(path, key), of_jax=of_jax) for key, part in cast("Any", tree).items()}
    if isinstance(tree, (list, tuple)) and not _is_column(cast("Sequence[Any]", tree)):
        parts = cast("Sequence[Any]", tree)
        names = getattr(parts, "_fields", range(len(parts)))
        walked = [walk(part, convert, _below(path, name), of_jax=of_jax) for part, name in zip(parts, names, strict=True)]
        kind: Any = type(parts)
        if isinstance(tree, list):
            return walked
        # A named tuple takes its fields as separate arguments.
        return kind(*walked) if hasattr(kind, "_fields") else tuple(walked)
    node: Any = cast("Any", tree)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        fields = [(field.name, getattr(node, field.name)) for field in dataclasses.fields(node) if field.init]
        return dataclasses.replace(
            node, **{name: walk(part, convert, _below(path, name), of_jax=of_jax) for name, part in fields}
        )
    if of_jax and (known := registered(node)) is not None:
        return known[1]([walk(part, convert, _below(path, at)) for at, part in enumerate(known[0])])
    return convert(path, tree)


def _is_column(tree: Sequence[Any]) -> bool:
    return isinstance(tree, list) and bool(tree) and all(isinstance(part, (str, bytes, int, float)) for part in tree)


def _stack_arrays(arrays: list[np.ndarray[Any, Any]], path: str) -> np.ndarray[Any, Any]:
    """Stacks arrays like `np.stack`. The error names the shapes that differ."""
    try:
        return _stack_alike(arrays)
    except ValueError:
        first = arrays[0].shape
        other = next((at for at, array in enumerate(arrays) if array.shape != first), None)
        if other is None:
            raise
        error = _cannot(path, f"element 0 of the batch has shape {first}, element {other} has {arrays[other].shape}")
        error.add_note("help: pack, pad or bucket sequences of different lengths before `batch`")
        raise error from None


def _stack_alike(arrays: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Stacks arrays like `np.stack`. Large results are aligned, so that JAX on a CPU takes them without a copy."""
    first = arrays[0]
    size = first.nbytes * len(arrays)
    alike = size >= _LARGE and all(array.dtype == first.dtype and array.shape == first.shape for array in arrays)
    if not alike or first.dtype.hasobject:
        return np.stack(arrays)
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    stacked = memory[start : start + size].view(first.dtype).reshape(len(arrays), *first.shape)
    return np.stack(arrays, out=stacked)


def _below(path: str, name: object) -> str:
    return f"{path}/{name}" if path else str(name)


def _cannot(path: str, why: str) -> ValueError:
    where = f" {path!r}" if path else ""
    return ValueError(f"cannot stack{where}: {why}")


def registered(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]] | None:
    """Returns the children of a node whose class is registered with JAX, and a function that rebuilds the node."""
    # No class can be registered before JAX is imported.
    jax: Any = sys.modules.get("jax")
    if jax is None or tree is None or isinstance(tree, _KNOWN):
        return None

    def below(part: object) -> bool:
        return part is not tree

    parts, node = jax.tree_util.tree_flatten(tree, is_leaf=below)
    return None if jax.tree_util.treedef_is_leaf(node) else (parts, lambda parts: jax.tree_util.tree_unflatten(node, parts))


def _stack_registered(items: Sequence[Any], nodes: Sequence[Any], path: str) -> Any:
    _same_type(items, path)
    if any(len(node[0]) != len(nodes[0][0]) for node in nodes):
        raise _cannot(path, f"elements of the batch have {sorted({len(node[0]) for node in nodes})} parts")
    columns = enumerate(zip(*(node[0] for node in nodes), strict=True))
    return nodes[0][1]([stack(parts, _below(path, at)) for at, parts in columns])


def _stack_mappings(items: Sequence[Any], path: str) -> dict[Any, Any]:
    first: Mapping[Any, Any] = items[0]
    for at, item in enumerate(items):
        have = list(cast("Any", item)) if isinstance(item, Mapping) else type(item).__name__
        if not isinstance(have, list) or set(have) != set(first):
            raise _cannot(path, f"element 0 of the batch has {list(first)}, element {at} has {have}")
    return {key: stack([item[key] for item in items], _below(path, key)) for key in first}


def _stack_sequences(items: Sequence[Any], path: str) -> Any:
    first = items[0]
    _same_type(items, path)
    for at, item in enumerate(items):
        if len(item) != len(first):
            raise _cannot(path, f"element 0 of the batch has {len(first)} parts, element {at} has {len(item)}")
    names = getattr(first, "_fields", range(len(first)))
    columns = [stack([item[part] for item in items], _below(path, name)) for part, name in enumerate(names)]
    if isinstance(first, list):
        return columns
    # A named tuple takes its fields as separate arguments.
    return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)


def _same_type(items: Sequence[Any], path: str) -> None:
    kinds = [cast("type[object]", type(item)) for item in items]
    for at, kind in enumerate(kinds):
        if kind is not kinds[0]:
            raise _cannot(path, f"element 0 of the batch is {kinds[0].__name__}, element {at} {kind.__name__}")
