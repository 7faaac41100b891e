"""Stages that call a function for every element."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.compat.grain import _transforms
from gristmill.compat.grain._dataset import IterDataset, MapDataset
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._seeds import numbers_of
from gristmill.compat.grain._stages import CoreIterDataset, CoreMapDataset, Counting, InStep, SameElements


def _function(transform: Any, kinds: dict[type[Any], str]) -> Callable[..., Any]:
    """Returns the method of a transform class, or the function itself."""
    for kind, method in kinds.items():
        if isinstance(transform, kind):
            bound: Callable[..., Any] = getattr(transform, method)
            return bound
    if not callable(transform):
        raise TypeError(f"needs a function or one of {[kind.__name__ for kind in kinds]}, got {transform!r}")
    function: Callable[..., Any] = transform
    return function


def _map(transform: Any) -> Callable[[Any], Any]:
    return _function(transform, {_transforms.Map: "map"})


def _filter(transform: Any) -> Callable[[Any], Any]:
    return _function(transform, {_transforms.Filter: "filter"})


def _with_index(transform: Any) -> Callable[[int, Any], Any]:
    return _function(transform, {_transforms.MapWithIndex: "map_with_index"})


def _random(transform: Any) -> Callable[[Any, np.random.Generator], Any]:
    return _function(transform, {_transforms.RandomMap: "random_map", _transforms.TfRandomMap: "np_random_map"})


class _Present:
    """A function that passes `None` through: a stream may contain `None` for a dropped element."""

    def __init__(self, function: Callable[..., Any], at: int = 0) -> None:
        # `functools.partial` uses this name, by which the function is found for pickling.
        self.func = function
        self._at = at

    def __call__(self, *args: Any) -> Any:
        return None if args[self._at] is None else self.func(*args)


class _Transformed:
    """The spec and the name of a stage with a transform."""

    _transform: Any
    _parents: Any

    @property
    def _element_spec(self) -> Any:
        if not hasattr(self._transform, "output_spec"):
            name = type(self._transform).__name__
            raise ValueError(
                f"{name} does not implement `output_spec`: give the transform a method `output_spec(self, input_spec)`"
            )
        return self._transform.output_spec(self._parents[0]._element_spec)

    def __str__(self) -> str:
        return f"{type(self).__name__}(transform={_transforms.get_pretty_transform_name(self._transform)})"


class _MapStage(_Transformed, CoreMapDataset[Any]):
    """A function applied to elements. A result of `None` empties the slot."""

    def __init__(self, parent: MapDataset[Any], transform: Any) -> None:
        super().__init__(parent)
        self._transform = transform

    def __len__(self) -> int:
        return len(self._parent)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return self._applied(parents[0]).drop_none()

    def _applied(self, core: gm.MapDataset) -> gm.MapDataset:
        raise NotImplementedError


class _IterStage(_Transformed, CoreIterDataset[Any]):
    def __init__(self, parent: IterDataset[Any], transform: Any) -> None:
        super().__init__(parent)
        self._transform = transform


_MOST_SEED = np.iinfo(np.uint32).max


def _seeded(function: Callable[..., Any], seed: int) -> Callable[[int, Any], Any]:
    """Returns a function of index and element with random numbers by index, for seeds longer than the core's."""
    pool = RngPool(seed)
    return lambda index, element: function(element, pool.acquire_rng(index))


def _random_seed(seed: int | None, default: int | None) -> int:
    """Returns the seed of a random map, which may have any length."""
    chosen = default if seed is None else seed
    return chosen if chosen is not None and chosen > _MOST_SEED else numbers_of(chosen, "random_map")


class MapMapDataset(_MapStage):
    """A function applied to every element."""

    def __init__(self, parent: MapDataset[Any], transform: Any) -> None:
        super().__init__(parent, transform)
        self._map_fn = _map(transform)

    def _applied(self, core: gm.MapDataset) -> gm.MapDataset:
        return core.map(self._map_fn)


class MapWithIndexMapDataset(_MapStage):
    """A function applied to every index and element."""

    def __init__(self, parent: MapDataset[Any], transform: Any) -> None:
        super().__init__(parent, transform)
        self._map_fn = _with_index(transform)

    def _applied(self, core: gm.MapDataset) -> gm.MapDataset:
        return core.map_with_index(self._map_fn)


class RandomMapMapDataset(_MapStage):
    """A function applied to every element and random numbers of its index."""

    def __init__(self, parent: MapDataset[Any], transform: Any, seed: int | None = None) -> None:
        super().__init__(parent, transform)
        self._map_fn = _random(transform)
        self._seed = _random_seed(seed, self._default_seed)

    def _applied(self, core: gm.MapDataset) -> gm.MapDataset:
        if self._seed > _MOST_SEED:
            return core.map_with_index(_seeded(self._map_fn, self._seed))
        return core.random_map(self._map_fn, seed=self._seed)


class _Filtering(SameElements):
    """Elements of the parent. A filter class is shown by its class name."""

    _transform: Any

    def __str__(self) -> str:
        transform = self._transform
        is_class = isinstance(transform, _transforms.Filter)
        name = type(transform).__name__ if is_class else _transforms.get_pretty_transform_name(transform)
        return f"{type(self).__name__}(transform={name})"


class FilterMapDataset(_Filtering, _MapStage):
    """A filter that empties the slots of elements for which a function returns false."""

    def __init__(self, parent: MapDataset[Any], transform: Any) -> None:
        super().__init__(parent, transform)
        self._filter_fn = _filter(transform)

    def _build(self, parents: Sequence[gm.MapDataset]) -> gm.MapDataset:
        return parents[0].filter(self._filter_fn)


class MapIterDataset(_IterStage, InStep[Any]):
    """A function applied to every element of a stream."""

    def __init__(self, parent: IterDataset[Any], transform: Any) -> None:
        super().__init__(parent, transform)
        self._map_fn = _Present(_map(transform))

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.map(self._map_fn)


class MapWithIndexIterDataset(_IterStage, Counting[Any]):
    """A function applied to every element of a stream and its number in the stream."""

    def __init__(self, parent: IterDataset[Any], transform: Any) -> None:
        super().__init__(parent, transform)
        self._map_fn = _Present(_with_index(transform), at=1)

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core.map_with_index(self._map_fn)


class RandomMapIterDataset(_IterStage, Counting[Any]):
    """A function applied to every element of a stream and random numbers of its position."""

    def __init__(self, parent: IterDataset[Any], transform: Any, seed: int | None = None) -> None:
        super().__init__(parent, transform)
        self._map_fn = _Present(_random(transform))
        self._seed = _random_seed(seed, self._default_seed)

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        if self._seed > _MOST_SEED:
            return core.map_with_index(_seeded(self._map_fn, self._seed))
        return core.random_map(self._map_fn, seed=self._seed)


class FilterIterDataset(_Filtering, _IterStage):
    """The elements of a stream for which a function returns true."""

    def __init__(self, parent: IterDataset[Any], transform: Any) -> None:
        super().__init__(parent, transform)
        self._filter_fn = _filter(transform)

    def _build(self, plan: Plan) -> gm.IterDataset:
        core: gm.IterDataset = self._parent._core(plan)
        return core.filter(self._filter_fn, **plan.thresholds)


class RngPool:
    """Random numbers by element index, from a generator per thread."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._threads = threading.local()

    def acquire_rng(self, index: int, *, op_seed: int = 0) -> np.random.Generator:
        """Returns the generator of element `index`, valid until the next call on this thread."""
        if not hasattr(self._threads, "generator"):
            self._threads.generator = np.random.Generator(np.random.Philox(self._seed))
            self._threads.start = self._threads.generator.bit_generator.state
        start = self._threads.start
        start["state"]["counter"][:] = [0, 0, op_seed, index]
        self._threads.generator.bit_generator.state = start
        generator: np.random.Generator = self._threads.generator
        return generator

    def release_rng(self, rng: np.random.Generator) -> None:
        """Does nothing: each thread keeps its generator."""
