"""The classes that users build pipelines of, subclass and iterate.

A dataset of this package is a thin description; what runs is the core dataset that it builds. A class of the user's own
enters the core as a source: a `MapDataset` by its `__getitem__`, an `IterDataset` by its `__iter__`.
"""

import abc
import sys
from builtins import slice as _slice
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

import numpy as np

import gristmill as gm
from gristmill.compat.grain import _seeds
from gristmill.compat.grain._base import DatasetOptions, DatasetSelectionMap
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_HERE = "gristmill.compat.grain"
INFINITE = sys.maxsize


def _make(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """A dataset of another module, which itself needs this one."""
    return getattr(import_module(f"{_HERE}.{module}"), name)(*args, **kwargs)


class Dataset:
    """What both kinds have in common: parents, seeds, specs and names."""

    # The seed that the random stages behind it derive theirs from.
    _seed_root: int | None = None

    def __init__(self, parents: Sequence[Any]) -> None:
        self._parents = parents

    @property
    def _default_seed(self) -> int | None:
        return _seeds.default_seed(self)

    @property
    def _element_spec(self) -> Any:
        raise NotImplementedError(f"Element spec inference is not implemented for {type(self).__name__}.")

    def pipe(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """`func(self, …)`, so that functions of datasets can stand in a chain."""
        return func(self, *args, **kwargs)

    def apply(self, transformations: Any) -> Any:
        """The dataset behind one or several transforms."""
        return apply_transformations(self, transformations)

    def __str__(self) -> str:
        return type(self).__name__


class MapDataset(Dataset, Generic[T]):
    """Random access: `ds[i]` for any `i`, `len(ds)` for one epoch. `None` stands for an element that was dropped."""


    def __init__(self, parents: "MapDataset[Any] | Sequence[MapDataset[Any]]" = ()) -> None:
        super().__init__((parents,) if isinstance(parents, MapDataset) else tuple(parents))

    @property
    def parents(self) -> "Sequence[MapDataset[Any]]":
        """The datasets that it reads from."""
        return cast("Sequence[MapDataset[Any]]", self._parents)

    @property
    def _parent(self) -> "MapDataset[Any]":
        (parent,) = self.parents
        return parent

    @staticmethod
    def source(source: Any) -> "MapDataset[Any]":
        """The records of a source, or of any sequence."""
        return cast("MapDataset[Any]", _make("_sources", "SourceMapDataset", source))

    @staticmethod
    def range(start: int, stop: int | None = None, step: int = 1) -> "MapDataset[int]":
        """Whole numbers, as Python's `range`."""
        return cast("MapDataset[int]", _make("_sources", "RangeMapDataset", start, stop, step))

    @staticmethod
    def mix(datasets: "Sequence[MapDataset[Any]]", weights: Sequence[float] | None = None) -> "MapDataset[Any]":
        """Elements of several datasets in proportion to the weights."""
        return cast("MapDataset[Any]", _make("_mix", "MixedMapDataset", parents=datasets, proportions=weights))

    @staticmethod
    def select_from_datasets(
        datasets: "Sequence[MapDataset[Any]]", selection_map: DatasetSelectionMap
    ) -> "MapDataset[Any]":
        """Elements of several datasets in an order of one's own."""
        made = _make("_mix", "MixedMapDataset", parents=datasets, selection_map=selection_map)
        return cast("MapDataset[Any]", made)

    @staticmethod
    def concatenate(datasets: "Sequence[MapDataset[Any]]") -> "MapDataset[Any]":
        """One dataset behind the other."""
        return cast("MapDataset[Any]", _make("_mix", "ConcatenateMapDataset", parents=datasets))

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no `__len__`")

    @overload
    def __getitem__(self, index: _slice) -> "MapDataset[T]": ...
    @overload
    def __getitem__(self, index: int) -> T | None: ...
    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no `__getitem__`")

    def _getitems(self, indices: Sequence[int]) -> Sequence[T | None]:
        return [self[index] for index in indices]

    def _core(self, dense: bool = False) -> gm.MapDataset:
        """The core dataset; if `dense`, of no empty slots. Of a class of the user's own it is made anew each time: it
        refers to its maker.
        """
        return gm.MapDataset.computed(self, dense=dense)

    def batch(
        self,
        batch_size: int,
        *,
        drop_remainder: bool = False,
        batch_fn: Callable[[Sequence[Any]], Any] | None = None,
    ) -> "MapDataset[Any]":
        """Stacks consecutive elements, within an epoch."""
        made = _make("_batch", "BatchMapDataset", self, batch_size, drop_remainder, batch_fn)
        return cast("MapDataset[Any]", made)

    def filter(self, transform: Any) -> "MapDataset[T]":
        """Empty slots in place of the elements that a function does not hold of."""
        return cast("MapDataset[T]", _make("_functions", "FilterMapDataset", self, transform))

    def map(self, transform: Any) -> "MapDataset[Any]":
        """Applies a function to every element; one that it returns `None` for is dropped."""
        return cast("MapDataset[Any]", _make("_functions", "MapMapDataset", self, transform))

    def map_with_index(self, transform: Any) -> "MapDataset[Any]":
        """Applies a function to every index, which goes on over the epochs, and its element."""
        return cast("MapDataset[Any]", _make("_functions", "MapWithIndexMapDataset", self, transform))

    def random_map(self, transform: Any, *, seed: int | None = None) -> "MapDataset[Any]":
        """Applies a function to every element and random numbers of its own."""
        return cast("MapDataset[Any]", _make("_functions", "RandomMapMapDataset", self, transform, seed))

    def seed(self, seed: int) -> "MapDataset[T]":
        """The seed from which the random stages behind it derive theirs."""
        return cast("MapDataset[T]", _make("_orders", "SeedMapDataset", self, seed=seed))

    def shuffle(self, seed: int | None = None) -> "MapDataset[T]":
        """Random order, another in every epoch."""
        return cast("MapDataset[T]", _make("_orders", "ShuffleMapDataset", self, seed=seed))

    def slice(self, sl: _slice) -> "MapDataset[T]":
        """The elements of a slice of every epoch."""
        return cast("MapDataset[T]", _make("_orders", "SliceMapDataset", self, sl))

    def repeat(self, num_epochs: int | None = None, *, reseed_each_epoch: bool = True) -> "MapDataset[T]":
        """Several epochs as one, or epochs without end."""
        made = _make("_orders", "RepeatMapDataset", self, num_epochs, reseed_each_epoch=reseed_each_epoch)
        return cast("MapDataset[T]", made)

    def to_iter_dataset(
        self, read_options: ReadOptions | None = None, *, allow_nones: bool = False
    ) -> "IterDataset[T]":
        """One epoch as a stream, empty slots skipped unless `allow_nones`."""
        if read_options is None:
            read_options = self._read_options()
        made = _make("_prefetch", "PrefetchIterDataset", self, read_options=read_options, allow_nones=allow_nones)
        return cast("IterDataset[T]", made)

    def _read_options(self) -> ReadOptions:
        for parent in self.parents:
            if parent._read_options().num_threads:
                return ReadOptions()
        return ReadOptions(num_threads=0, prefetch_buffer_size=0) if self.parents else ReadOptions()

    def __iter__(self) -> "DatasetIterator[T]":
        return self.to_iter_dataset().__iter__()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cached"}


class CoreMapDataset(MapDataset[T]):
    """A `MapDataset` that the core evaluates: it says how its core dataset is built."""

    def _build(self, parents: Sequence[gm.MapDataset], dense: bool) -> gm.MapDataset:
        raise NotImplementedError

    def _core(self, dense: bool = False) -> gm.MapDataset:
        if type(self).__getitem__ is not CoreMapDataset.__getitem__:
            return super()._core(dense)
        cached: dict[bool, gm.MapDataset] = self.__dict__.setdefault("_cached", {})
        if dense not in cached:
            cached[dense] = self._build([parent._core(dense) for parent in self.parents], dense)
        return cached[dense]

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


class Plan:
    """What the last dataset of a pipeline decides for those before it."""

    def __init__(self, options: DatasetOptions | None = None) -> None:
        self.options = options or DatasetOptions()
        self.threads = 0

    def read(self, options: ReadOptions) -> None:
        """A part of the pipeline is to be read with these."""
        self.threads = max(self.threads, options.threads)


class IterDataset(Dataset, Iterable[T]):
    """A stream: read in order, small in state."""

    def __init__(self, parents: Any = ()) -> None:
        super().__init__((parents,) if isinstance(parents, Dataset) else tuple(parents))

    @property
    def parents(self) -> Sequence[Any]:
        """The datasets that it reads from."""
        return self._parents

    @property
    def _parent(self) -> Any:
        (parent,) = self._parents
        return parent

    @staticmethod
    def mix(
        datasets: "Sequence[IterDataset[Any]] | Mapping[str, IterDataset[Any]]",
        weights: Sequence[float] | Mapping[str, float] | None = None,
    ) -> "IterDataset[Any]":
        """Elements of several streams in proportion to the weights, until one ends.

        Of named streams a state is restored by name: some may be new, and the weights may differ.
        """
        return cast("IterDataset[Any]", _make("_mix", "MixedIterDataset", datasets, weights))

    def _core(self, plan: Plan) -> gm.IterDataset:
        """The core dataset; a class of the user's own is a source for it."""
        del plan
        return gm.IterDataset.source(self)

    def batch(
        self,
        batch_size: int,
        *,
        drop_remainder: bool = False,
        batch_fn: Callable[[Sequence[Any]], Any] | None = None,
    ) -> "IterDataset[Any]":
        """Stacks consecutive elements."""
        made = _make("_batch", "BatchIterDataset", self, batch_size, drop_remainder, batch_fn)
        return cast("IterDataset[Any]", made)

    def filter(self, transform: Any) -> "IterDataset[T]":
        """Keeps the elements that a function holds of."""
        return cast("IterDataset[T]", _make("_functions", "FilterIterDataset", self, transform))

    def map(self, transform: Any) -> "IterDataset[Any]":
        """Applies a function to every element."""
        return cast("IterDataset[Any]", _make("_functions", "MapIterDataset", self, transform))

    def map_with_index(self, transform: Any) -> "IterDataset[Any]":
        """Applies a function to every element and its number in this stream."""
        return cast("IterDataset[Any]", _make("_functions", "MapWithIndexIterDataset", self, transform))

    def random_map(self, transform: Any, *, seed: int | None = None) -> "IterDataset[Any]":
        """Applies a function to every element and random numbers of its own."""
        return cast("IterDataset[Any]", _make("_functions", "RandomMapIterDataset", self, transform, seed))

    def seed(self, seed: int) -> "IterDataset[T]":
        """The seed from which the random stages behind it derive theirs."""
        return cast("IterDataset[T]", _make("_orders", "SeedIterDataset", self, seed=seed))

    def mp_prefetch(
        self,
        options: MultiprocessingOptions | None = None,
        worker_init_fn: Callable[[int, int], None] | None = None,
        sequential_slice: bool = False,
    ) -> "IterDataset[T]":
        """Evaluated by worker processes.

        DIFFERENCE: the elements and their order are those of the pipeline without workers, for any number of them.
        """
        options = options or MultiprocessingOptions(num_workers=10)
        made = _make("_prefetch", "multiprocess_prefetch_options", self, options, worker_init_fn, sequential_slice)
        return cast("IterDataset[T]", made)

    def prefetch(self, multiprocessing_options: MultiprocessingOptions) -> "IterDataset[T]":
        """The old name of `mp_prefetch`."""
        return self.mp_prefetch(multiprocessing_options)

    def __iter__(self) -> "DatasetIterator[T]":
        raise NotImplementedError(f"{type(self).__name__} has no `__iter__`")


class CoreIterDataset(IterDataset[T]):
    """An `IterDataset` that the core evaluates."""

    def state_at(self, index: int) -> dict[str, Any]:
        """The state in front of element `index`, where that follows from the index."""
        raise NotImplementedError(f"set_next_index is not supported for {self}")

    def index_of(self, state: dict[str, Any]) -> int:
        """The index of the element behind `state`."""
        raise NotImplementedError(f"get_next_index is not supported for {self}")

    def _build(self, plan: Plan) -> gm.IterDataset:
        raise NotImplementedError

    def _core(self, plan: Plan) -> gm.IterDataset:
        if type(self).__iter__ is not CoreIterDataset.__iter__:
            return super()._core(plan)
        return self._build(plan)

    def __iter__(self) -> "DatasetIterator[T]":
        return cast("DatasetIterator[T]", _make("_iterator", "CoreIterator", self))


class DatasetIterator(Iterator[T], abc.ABC):
    """A pass over an `IterDataset`. Classes of the user's own add `__next__`, `get_state` and `set_state`."""

    _MUTATES_ELEMENT_SPEC: ClassVar[bool] = True

    def __init__(self, parents: Any = ()) -> None:
        self._parents: tuple[DatasetIterator[Any], ...] = (
            (parents,) if isinstance(parents, DatasetIterator) else tuple(parents)
        )
        self._closed = False

    @property
    def _parent(self) -> "DatasetIterator[Any]":
        (parent,) = self._parents
        return parent

    def __iter__(self) -> Self:
        return self

    @abc.abstractmethod
    def __next__(self) -> T: ...

    @abc.abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Where it is: a dict that JSON can hold."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken."""

    def start_prefetch(self) -> None:
        """Begins to read ahead, before the first element is asked for."""
        for parent in self._parents:
            parent.start_prefetch()

    def close(self) -> None:
        """Ends what reads ahead. Closing twice is closing once; asking for an element after it is a `ValueError`."""
        self._closed = True
        for parent in self._parents:
            parent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _assert_not_closed(self) -> None:
        if self._closed:
            raise ValueError("Attempting to use iterator after it was closed.")

    async def save(self, directory: Any) -> None:
        """Writes the state into a folder of a checkpoint of Orbax."""
        await _make("checkpoint", "save_state", self, directory)

    async def load(self, directory: Any) -> None:
        """Reads what `save` wrote."""
        await _make("checkpoint", "load_state", self, directory)

    def _set_next_index(self, index: int) -> None:
        raise NotImplementedError(f"set_next_index is not supported for {type(self).__name__}: {self}")

    def _get_next_index(self) -> int:
        raise NotImplementedError(f"get_next_index is not supported for {type(self).__name__}: {self}")

    def __str__(self) -> str:
        return type(self).__name__


class WithOptionsIterDataset(CoreIterDataset[T]):
    """Options for the whole pipeline before it."""

    def __init__(self, parent: IterDataset[T], options: DatasetOptions) -> None:
        super().__init__(parent)
        self.options = options

    def _build(self, plan: Plan) -> gm.IterDataset:
        plan.options = plan.options.merge(self.options)
        return cast(gm.IterDataset, self._parent._core(plan))

    def state_at(self, index: int) -> dict[str, Any]:
        return cast("dict[str, Any]", self._parent.state_at(index))

    def index_of(self, state: dict[str, Any]) -> int:
        return cast(int, self._parent.index_of(state))

    @property
    def _element_spec(self) -> Any:
        return self._parent._element_spec

    def __str__(self) -> str:
        return f"WithOptionsIterDataset(options={self.options})"


def apply_transformations(ds: Any, transformations: Any) -> Any:
    """`ds` behind one or several transforms, each applied by its kind."""
    from gristmill.compat.grain import _transforms as kinds

    if not isinstance(transformations, (list, tuple)):
        transformations = [transformations]
    for transform in cast("Sequence[Any]", transformations):
        match transform:
            case kinds.Batch():
                ds = ds.batch(
                    transform.batch_size, drop_remainder=transform.drop_remainder, batch_fn=transform.batch_fn
                )
            case kinds.Map():
                ds = ds.map(transform)
            case kinds.RandomMap():
                ds = ds.random_map(transform)
            case kinds.MapWithIndex():
                ds = ds.map_with_index(transform)
            case kinds.Filter():
                ds = ds.filter(transform)
            case kinds.FlatMap():
                name = "FlatMapMapDataset" if isinstance(ds, MapDataset) else "FlatMapIterDataset"
                ds = _make("_flatmap", name, ds, transform)
            case _:
                raise NotImplementedError(f"Transformation type: {transform} is not supported.")
    return ds


def get_element_spec(ds: Any) -> Any:
    """Shapes and dtypes of the elements, without evaluating one where the stages say theirs."""
    return ds._element_spec


def set_next_index(ds_iter: DatasetIterator[Any], index: int) -> None:
    """Goes to element `index`, where each stage can say what that is."""
    ds_iter._set_next_index(index)


def get_next_index(ds_iter: DatasetIterator[Any]) -> int:
    """The index of the element that is given next."""
    return ds_iter._get_next_index()


def numbers_of(seed: int | None, what: str) -> int:
    """A seed, or an error that says how to give one."""
    if seed is None:
        raise ValueError(
            f"`{what}` requires a seed. Please either provide it with `ds.seed(seed)` before it "
            f"or pass it directly with `{what}(seed=seed)`."
        )
    if not 0 <= seed <= np.iinfo(np.uint32).max:
        raise ValueError(f"Seed must be an integer between 0 and 2**32-1 (got {seed=}).")
    return int(seed)
