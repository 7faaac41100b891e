"""Base classes of transforms."""

import abc
import dataclasses
import inspect
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

import numpy as np


class Map(abc.ABC):
    """A transform of an element into an element."""

    @abc.abstractmethod
    def map(self, element: Any) -> Any:
        """Returns the new element, or `None` to drop it."""


class MapWithIndex(abc.ABC):
    """A transform of an element and its index into an element."""

    @abc.abstractmethod
    def map_with_index(self, index: int, element: Any) -> Any:
        """Returns the new element."""


class RandomMap(abc.ABC):
    """A transform of an element and random numbers into an element."""

    @abc.abstractmethod
    def random_map(self, element: Any, rng: np.random.Generator) -> Any:
        """Returns the new element."""


class TfRandomMap(abc.ABC):
    """`RandomMap` under TensorFlow's name."""

    @abc.abstractmethod
    def np_random_map(self, element: Any, rng: np.random.Generator) -> Any:
        """Returns the new element."""


class Filter(abc.ABC):
    """A transform that keeps some elements."""

    @abc.abstractmethod
    def filter(self, element: Any) -> bool:
        """Returns whether to keep the element."""


class FlatMap(abc.ABC):
    """A transform of an element into at most `max_fan_out` elements."""

    max_fan_out: int

    @abc.abstractmethod
    def flat_map(self, element: Any) -> Sequence[Any]:
        """Returns the new elements."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """A transform that stacks elements into batches."""

    batch_size: int
    drop_remainder: bool = False
    batch_fn: Callable[[Sequence[Any]], Any] | None = None


Transformation: TypeAlias = Batch | Map | RandomMap | TfRandomMap | Filter | FlatMap | MapWithIndex
Transformations: TypeAlias = Sequence[Transformation]


def get_pretty_transform_name(transform: Any) -> str:
    """Returns the name of `transform` in reports and errors: a class name, or a function's name, file and line."""
    kind = type(transform)
    if isinstance(transform, (Batch, Map, RandomMap, TfRandomMap, Filter, FlatMap)):
        plain = all(getattr(kind, name) is getattr(object, name) for name in ("__str__", "__repr__"))
        return kind.__name__ if plain else str(transform)
    name = getattr(transform, "__name__", None) or repr(transform)
    try:
        file = inspect.getsourcefile(transform)
        line = inspect.getsourcelines(transform)[1]
    except (OSError, TypeError):
        return name
    if file is None:
        return name
    parts = PurePath(file).parts
    return f"{name} @ {file if len(parts) < 3 else '.../' + '/'.join(parts[-3:])}:{line}"
