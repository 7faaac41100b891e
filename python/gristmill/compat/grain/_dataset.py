"""The classes from which users build pipelines, and which they subclass and iterate.

A dataset of this package only describes a stage and builds a core dataset (of gristmill), which does the work. A custom
class is a source of the core: a `MapDataset` through its `__getitem__`, an `IterDataset` through its `__iter__`.
"""

import sys
from builtins import slice as _slice
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast, overload

import gristmill as gm
from gristmill.compat.grain import _seeds
from gristmill.compat.grain._base import DatasetSelectionMap
from gristmill.compat.grain._dataset_iterator import DatasetIterator, only_parent
from gristmill.compat.grain._lazy import make
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions
from gristmill.compat.grain._plan import Plan

T = TypeVar("T")

INFINITE = sys.maxsize


class Dataset:
    """Base class of both kinds of dataset: parents, seeds, specs and names."""

    # Seed for the later random stages, which derive their seeds from it.
    _seed_root: int | None = None

    def __init__(self, parents: Sequence[Any]) -> None:
        self._parents = parents

    @property
    def _seed_parents(self) -> Sequence[Any]:
        """The datasets in which later stages search for a seed."""
        return self._parents

    @property
    def _default_seed(self) -> int | None:
        return _seeds.default_seed(self)

    @property
    def _element_spec(self) -> Any:
        raise NotImplementedError(f"Element spec inference is not implemented for {type(self).__name__}.")

    def pipe(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Returns `func(self, …)`, so that functions of datasets fit into a chain of calls."""
        return func(self, *args, **kwargs)

    def apply(self, transformations: Any) -> Any:
        """Returns the dataset with one or several transforms applied."""
        return make("_apply", "apply_transformations", self, transformations)

    def __str__(self) -> str:
        return type(self).__name__


class MapDataset(Dataset, Generic[T]):
    """Random access: `ds[i]` for any `i`, `len(ds)` for one epoch. `None` represents a dropped element."""

    def __init__(self, parents: "MapDataset[Any] | Sequence[MapDataset[Any]]" = ()) -> None:
        super().__init__((parents,) if isinstance(parents, MapDataset) else tuple(parents))

    @property
    def parents(self) -> "Sequence[MapDataset[Any]]":
        """The datasets that this dataset reads."""
        return cast("Sequence[MapDataset[Any]]", self._parents)

    @property
    def _parent(self) -> "MapDataset[Any]":
        return cast("MapDataset[Any]", only_parent(self, self._parents))

    @staticmethod
    def source(source: Any) -> "MapDataset[Any]":
        """Returns the records of a source or of any sequence."""
        return cast("MapDataset[Any]", make("_sources", "SourceMapDataset", source))

    @staticmethod
    def range(start: int, stop: int | None = None, step: int = 1) -> "MapDataset[int]":
        """Returns the integers of a Python `range`."""
        return cast("MapDataset[int]", make("_sources", "RangeMapDataset", start, stop, step))

    @staticmethod
    def mix(datasets: "Sequence[MapDataset[Any]]", weights: Sequence[float] | None = None) -> "MapDataset[Any]":
        """Mixes elements of several datasets in proportion to the weights."""
        return cast("MapDataset[Any]", make("_mix", "MixedMapDataset", parents=datasets, proportions=weights))

    @staticmethod
    def select_from_datasets(
        datasets: "Sequence[MapDataset[Any]]", selection_map: DatasetSelectionMap
    ) -> "MapDataset[Any]":
        """Selects elements of several datasets in a custom order."""
        made = make("_mix", "MixedMapDataset", parents=datasets, selection_map=selection_map)
        return cast("MapDataset[Any]", made)

    @staticmethod
    def concatenate(datasets: "Sequence[MapDataset[Any]]") -> "MapDataset[Any]":
        """Concatenates datasets."""
        return cast("MapDataset[Any]", make("_mix", "ConcatenateMapDataset", parents=datasets))

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

    def _core(self) -> gm.MapDataset:
        """Returns the core dataset. For a custom class it calls `__getitem__` for each index."""
        return gm.MapDataset.computed(self)

    def batch(
        self,
        batch_size: int,
        *,
        drop_remainder: bool = False,
        batch_fn: Callable[[Sequence[Any]], Any] | None = None,
    ) -> "MapDataset[Any]":
        """Stacks consecutive elements of an epoch."""
        made = make("_batch", "BatchMapDataset", self, batch_size, drop_remainder, batch_fn)
        return cast("MapDataset[Any]", made)

    def filter(self, transform: Any) -> "MapDataset[T]":
        """Drops elements for which a function returns false; their slots stay empty."""
        return cast("MapDataset[T]", make("_functions", "FilterMapDataset", self, transform))

    def map(self, transform: Any) -> "MapDataset[Any]":
        """Applies a function to every element. An element for which it returns `None` is dropped."""
        return cast("MapDataset[Any]", make("_functions", "MapMapDataset", self, transform))

    def map_with_index(self, transform: Any) -> "MapDataset[Any]":
        """Applies a function to every index and element. Indices continue across epochs."""
        return cast("MapDataset[Any]", make("_functions", "MapWithIndexMapDataset", self, transform))

    def random_map(self, transform: Any, *, seed: int | None = None) -> "MapDataset[Any]":
        """Applies a function to every element, with a random generator per element."""
        return cast("MapDataset[Any]", make("_functions", "RandomMapMapDataset", self, transform, seed))

    def seed(self, seed: int) -> "MapDataset[T]":
        """Sets the seed from which later random stages derive their seeds."""
        return cast("MapDataset[T]", make("_orders", "SeedMapDataset", self, seed=seed))

    def shuffle(self, seed: int | None = None) -> "MapDataset[T]":
        """Shuffles all elements, in a different order for every epoch."""
        return cast("MapDataset[T]", make("_orders", "ShuffleMapDataset", self, seed=seed))

    def slice(self, sl: "_slice | Sequence[int] | MapDataset[int]") -> "MapDataset[T]":
        """Selects a slice of every epoch, or the elements at given indices in this order."""
        stage = "SliceMapDataset" if isinstance(sl, _slice) else "ReindexMapDataset"
        return cast("MapDataset[T]", make("_orders", stage, self, sl))

    def repeat(self, num_epochs: int | None = None, *, reseed_each_epoch: bool = True) -> "MapDataset[T]":
        """Repeats the dataset for a number of epochs, or endlessly."""
        made = make("_orders", "RepeatMapDataset", self, num_epochs, reseed_each_epoch=reseed_each_epoch)
        return cast("MapDataset[T]", made)

    def to_iter_dataset(
        self, read_options: ReadOptions | None = None, *, allow_nones: bool = False
    ) -> "IterDataset[T]":
        """Returns an epoch as a stream, without empty slots unless `allow_nones`."""
        made = make("_prefetch", "PrefetchIterDataset", self, read_options=read_options, allow_nones=allow_nones)
        return cast("IterDataset[T]", made)

    def _default_read_options(self) -> ReadOptions:
        """Returns Grain's default read options for this dataset."""
        return ReadOptions()

    def _read_options(self) -> ReadOptions:
        for parent in self.parents:
            if parent._read_options().num_threads:
                return ReadOptions()
        return ReadOptions(num_threads=0, prefetch_buffer_size=0) if self.parents else ReadOptions()

    def __iter__(self) -> "DatasetIterator[T]":
        return self.to_iter_dataset().__iter__()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_cached"}


class IterDataset(Dataset, Iterable[T]):
    """A stream, read in order, with a small state."""

    def __init__(self, parents: Any = ()) -> None:
        super().__init__((parents,) if isinstance(parents, Dataset) else tuple(parents))

    @property
    def parents(self) -> Sequence[Any]:
        """The datasets that this dataset reads."""
        return self._parents

    @property
    def _parent(self) -> Any:
        return only_parent(self, self._parents)

    @staticmethod
    def mix(
        datasets: "Sequence[IterDataset[Any]] | Mapping[str, IterDataset[Any]]",
        weights: Sequence[float] | Mapping[str, float] | None = None,
    ) -> "IterDataset[Any]":
        """Mixes elements of several streams in proportion to the weights, until any stream ends.

        Named streams are ordered by name, and a state is restored by name: the restored mix may have new streams and
        other weights.
        """
        return cast("IterDataset[Any]", make("_mix", "MixedIterDataset", datasets, weights))

    def _core(self, plan: Plan) -> gm.IterDataset:
        """Returns the core dataset. A custom class is a source of the core."""
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
        made = make("_batch", "BatchIterDataset", self, batch_size, drop_remainder, batch_fn)
        return cast("IterDataset[Any]", made)

    def filter(self, transform: Any) -> "IterDataset[T]":
        """Keeps the elements for which a function returns true."""
        return cast("IterDataset[T]", make("_functions", "FilterIterDataset", self, transform))

    def map(self, transform: Any) -> "IterDataset[Any]":
        """Applies a function to every element."""
        return cast("IterDataset[Any]", make("_functions", "MapIterDataset", self, transform))

    def map_with_index(self, transform: Any) -> "IterDataset[Any]":
        """Applies a function to every element and its number in this stream."""
        return cast("IterDataset[Any]", make("_functions", "MapWithIndexIterDataset", self, transform))

    def random_map(self, transform: Any, *, seed: int | None = None) -> "IterDataset[Any]":
        """Applies a function to every element, with a random generator per element."""
        return cast("IterDataset[Any]", make("_functions", "RandomMapIterDataset", self, transform, seed))

    def seed(self, seed: int) -> "IterDataset[T]":
        """Sets the seed from which later random stages derive their seeds."""
        return cast("IterDataset[T]", make("_orders", "SeedIterDataset", self, seed=seed))

    def mp_prefetch(
        self,
        options: MultiprocessingOptions | None = None,
        worker_init_fn: Callable[[int, int], None] | None = None,
        sequential_slice: bool = False,
    ) -> "IterDataset[T]":
        """Evaluates the pipeline in worker processes.

        DIFFERENCE: the elements and their order do not depend on the number of workers.
        """
        options = options or MultiprocessingOptions(num_workers=10)
        made = make("_prefetch", "multiprocess_prefetch_options", self, options, worker_init_fn, sequential_slice)
        return cast("IterDataset[T]", made)

    def prefetch(self, multiprocessing_options: MultiprocessingOptions) -> "IterDataset[T]":
        """Old name of `mp_prefetch`."""
        return self.mp_prefetch(multiprocessing_options)

    def __iter__(self) -> "DatasetIterator[T]":
        raise NotImplementedError(f"{type(self).__name__} has no `__iter__`")
