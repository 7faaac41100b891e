"""Trees of dicts, lists, tuples, named tuples, dataclasses and attrs classes.

DIFFERENCE: trees do not depend on whether JAX is installed: `None` is a tree without leaves, and dict keys are sorted
if they are sortable.
"""

import dataclasses
import pprint
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gristmill._tree import registered


def _keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)


def _attrs_names(tree: Any) -> list[str] | None:
    fields = getattr(type(tree), "__attrs_attrs__", None)
    return None if fields is None else [field.name for field in fields]


def _children(tree: Any) -> list[tuple[Any, Any]] | None:
    """Returns the children of a node with their keys; `None` for a leaf."""
    if tree is None:
        return []
    if isinstance(tree, Mapping):
        mapping: Mapping[Any, Any] = tree
        return [(key, mapping[key]) for key in _keys(mapping)]
    if isinstance(tree, tuple) and hasattr(cast(Any, tree), "_fields"):
        return [(name, getattr(cast(Any, tree), name)) for name in cast(Any, tree)._fields]
    if isinstance(tree, (list, tuple)):
        return list(enumerate(cast("Sequence[Any]", tree)))
    return _registered_children(tree)


def _registered_children(tree: Any) -> list[tuple[Any, Any]] | None:
    """Returns the children of a registered class, a dataclass or an attrs class with their keys; `None` for a leaf."""
    if hasattr(tree, "shape") and hasattr(tree, "dtype"):
        return None
    names = _attrs_names(tree)
    told = registered(tree)
    if told is not None:
        return list(enumerate(told[0]))
    if names is None and dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in dataclasses.fields(tree)]
    return None if names is None else [(name, getattr(tree, name)) for name in names]


def _rebuild(tree: Any, parts: Sequence[Any]) -> Any:
    """Returns a node like `tree` with other children."""
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        mapping: Mapping[Any, Any] = tree
        made = dict(zip(_keys(mapping), parts, strict=True))
        kind: Any = type(cast(Any, tree))
        if kind is dict:
            return {key: made[key] for key in cast("dict[Any, Any]", tree)}
        if hasattr(tree, "default_factory"):
            return kind(cast(Any, tree).default_factory, made)
        return kind(made)
    if isinstance(tree, tuple) and hasattr(cast(Any, tree), "_fields"):
        return type(cast(Any, tree))(*parts)
    if isinstance(tree, (list, tuple)):
        return type(cast("list[Any]", tree))(parts)
    told = registered(tree)
    if told is not None:
        return told[1](parts)
    names = [key for key, _ in _children(tree) or ()]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return dataclasses.replace(tree, **dict(zip(names, parts, strict=True)))
    return type(tree)(**dict(zip(names, parts, strict=True)))


def flatten(structure: Any) -> list[Any]:
    """Returns the leaves."""
    return [leaf for _, leaf in flatten_with_path(structure)]


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Returns the leaves, each with its path of keys."""

    def walk(path: tuple[Any, ...], tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
        children = _children(tree)
        if children is None:
            yield path, tree
        for key, child in children or ():
            yield from walk((*path, key), child)

    return list(walk((), structure))


def unflatten_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """Returns a tree like `structure` with other leaves."""
    leaves = list(flat_sequence)
    waiting = iter(leaves)

    def build(tree: Any) -> Any:
        children = _children(tree)
        if children is None:
            return next(waiting)
        return _rebuild(tree, [build(child) for _, child in children])

    wanted = len(flatten(structure))
    if wanted != len(leaves):
        raise ValueError(f"the tree has {wanted} leaves, and {len(leaves)} are given")
    return build(structure)


def map_structure(f: Callable[..., Any], *trees: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Returns a tree like the first with the results of `f`, which receives corresponding leaves of all trees."""
    return map_structure_with_path(lambda _, *leaves: f(*leaves), *trees, is_leaf=is_leaf)


def map_structure_with_path(f: Callable[..., Any], *trees: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Acts like `map_structure`, but also passes the path of keys to `f` as its first argument."""

    def go(path: tuple[Any, ...], *nodes: Any) -> Any:
        children = None if is_leaf is not None and is_leaf(nodes[0]) else _children(nodes[0])
        if children is None:
            return f(path, *nodes)
        others = [_parts_like(nodes[0], node) for node in nodes[1:]]
        keys = [key for key, _ in children]
        columns = [[child for _, child in children], *others]
        return _rebuild(nodes[0], [go((*path, key), *parts) for key, *parts in zip(keys, *columns, strict=True)])

    return go((), *trees)


def _parts_like(tree: Any, other: Any) -> list[Any]:
    assert_same_level(tree, other)
    return [child for _, child in _children(other) or ()]


def assert_same_level(a: Any, b: Any) -> None:
    """Raises unless both are nodes of one kind with equal keys, or both are leaves."""
    ours, theirs = _children(a), _children(b)
    if (ours is None) != (theirs is None):
        raise ValueError(f"one is a leaf and the other is not: {a!r} and {b!r}")
    if ours is None or theirs is None:
        return
    if type(a) is not type(b):
        raise TypeError(f"trees of different types: {type(a)} and {type(b)}")
    if [key for key, _ in ours] != [key for key, _ in theirs]:
        keys = [[key for key, _ in side] for side in (ours, theirs)]
        raise ValueError(f"trees of different keys: {keys[0]} and {keys[1]}")


def assert_same_structure(a: Any, b: Any) -> None:
    """Raises unless both trees have the same structure."""
    assert_same_level(a, b)
    for (_, x), (_, y) in zip(_children(a) or (), _children(b) or (), strict=True):
        assert_same_structure(x, y)


def map_structure_up_to(shallow_structure: Any, f: Callable[..., Any], structure: Any) -> Any:
    """Acts like `map_structure` down to the leaves of the first tree, which may correspond to whole subtrees."""

    def go(shallow: Any, deep: Any) -> Any:
        children = _children(shallow)
        if children is None:
            return f(deep)
        return _rebuild(shallow, [go(x, y) for (_, x), y in zip(children, _parts_like(shallow, deep), strict=True)])

    return go(shallow_structure, structure)


def _name(leaf: Any) -> str:
    return str(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf).__name__


def _leaf_spec(leaf: Any) -> str:
    if isinstance(leaf, (list, tuple)):
        inner = cast("Sequence[Any]", leaf)
        kind = type(inner[0]).__name__ if inner else ""
        size = "unknown shape" if inner and hasattr(inner[0], "shape") else len(inner)
        return f"{type(inner).__name__}<{kind}>[{size}]"
    parts = _registered_children(leaf)
    if parts:
        return f"{type(leaf).__name__}\n{ {name: spec_like(part) for name, part in parts} }[]"
    return f"{_name(leaf)}{list(getattr(leaf, 'shape', ()))}"


def spec_like(structure: Any) -> Any:
    """Returns a tree of texts that describe the leaves."""

    def is_leaf(tree: Any) -> bool:
        return isinstance(tree, (list, tuple)) and not hasattr(cast(Any, tree), "_fields") or bool(
            _registered_children(tree)
        )

    return map_structure(_leaf_spec, structure, is_leaf=is_leaf)


def describe(structure: Any) -> str:
    """Returns the description of `spec_like` as text."""
    return pprint.pformat(spec_like(structure))


def estimate_byte_size(structure: Any) -> int:
    """Returns the bytes of the arrays and texts in a tree."""
    total = 0
    for leaf in flatten(structure):
        if isinstance(leaf, np.ndarray):
            total += int(leaf.nbytes)
        elif isinstance(leaf, (str, bytes)):
            total += len(leaf)
    return total
