"""Grain's original interface: an object that combines a source, a sampler and operations.

DIFFERENCE: the data does not depend on `worker_count`, and a state can be restored with any number of workers.

DIFFERENCE: without `drop_remainder` no record is lost: two shards of 17 records have 9 and 8. Grain 0.2.18 yields 8 for
each; later versions yield 9 and 8 too. With `drop_remainder=True` all shards have an equal length.
"""

import copy
import dataclasses
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from gristmill import orbax
from gristmill.compat.grain import _loader_states, _operations, _transforms, _tree_lib
from gristmill.compat.grain import _shared_memory as shared_memory_array
from gristmill.compat.grain._batch import make_batch
from gristmill.compat.grain._dataset import IterDataset, MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._flatmap import FlatMapIterDataset
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions
from gristmill.compat.grain._record import Record, RecordMetadata
from gristmill.compat.grain._samplers import IndexSampler, SequentialSampler
from gristmill.compat.grain._sharding import NoSharding, ShardOptions

def _length(sampler: Any) -> int:
    """Returns the length of a sampler, or the first index that it rejects if it has no length."""
    if hasattr(sampler, "__len__"):
        return len(sampler)

    def has(index: int) -> bool:
        try:
            sampler[index]
        except IndexError:
            return False
        return True

    low, high = 0, 1
    while has(high - 1):
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if has(middle) else (low, middle)
    return low


# Samplers that make a new generator for each call.
_FRESH = (IndexSampler, SequentialSampler)


class CopyNumPyArrayToSharedMemory(_transforms.Map):
    """A transform that moves arrays to shared memory and returns metadata for other processes to attach to them.

    Worker processes do not need this: their output is in shared memory already.
    """

    def map(self, element: Any) -> Any:
        """Returns the element with metadata in place of each array of plain numbers; other leaves stay unchanged."""
        return _tree_lib.map_structure(_shared, element)


def _shared(leaf: Any) -> Any:
    if not isinstance(leaf, np.ndarray) or leaf.dtype.hasobject or not leaf.flags.c_contiguous:
        return leaf
    array = shared_memory_array.SharedMemoryArray(leaf.shape, leaf.dtype)
    np.copyto(array, leaf, casting="no")
    return array.metadata


class _SampledRecords(MapDataset[Record[Any]]):
    """The records of a shard in the order of the sampler."""

    def __init__(self, data_source: Any, sampler: Any, shard: ShardOptions) -> None:
        super().__init__()
        self._source = data_source
        self._sampler = sampler
        self._shard = shard
        length = _length(sampler)
        spare = 0 if shard.drop_remainder else shard.shard_count - 1 - shard.shard_index
        self._length = (length + spare) // shard.shard_count

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        metadata = self._sampler[index * self._shard.shard_count + self._shard.shard_index]
        if metadata.rng is not None and type(self._sampler) not in _FRESH:
            # A custom sampler may reuse its generators. The copy makes repeated reads draw equal numbers.
            metadata = dataclasses.replace(metadata, rng=copy.deepcopy(metadata.rng))
        return Record(metadata=metadata, data=self._source[metadata.record_key])


class _Ran(IterDataset[Any]):
    """A custom operation without a state: a resume runs it again from the start."""

    def __init__(self, parent: IterDataset[Any], operation: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        super().__init__(parent)
        self._operation = operation

    def __iter__(self) -> Any:
        return self._operation(iter(self._parent))


class _FlatRecords(_transforms.FlatMap):
    """The pieces of each record, each with its own index and generator.

    DIFFERENCE: the random numbers of a piece depend on its record and its number in the record only. Sharing the
    record's generator would make them depend on the order of evaluation. In Grain, pieces have no random numbers.
    """

    def __init__(self, transform: _transforms.FlatMap, *, is_random: bool) -> None:
        self._transform = transform
        self.max_fan_out = transform.max_fan_out
        # Whether a later operation may use random numbers.
        self._is_random = is_random

    def flat_map(self, element: Record[Any]) -> Sequence[Record[Any]]:
        first = element.metadata.index * self.max_fan_out
        pieces = list(self._transform.flat_map(element.data))
        rngs = _rngs_of_pieces(element.metadata.rng, len(pieces)) if self._is_random else [None] * len(pieces)
        return [
            Record(RecordMetadata(index=first + at, rng=rng), data)
            for at, (data, rng) in enumerate(zip(pieces, rngs, strict=True))
        ]


def _rngs_of_pieces(rng: np.random.Generator | None, count: int) -> Sequence[np.random.Generator | None]:
    """Returns a generator for each piece of a record, derived from the generator of the record."""
    if rng is None:
        return [None] * count
    entropy = [int(word) for word in rng.integers(1 << 32, size=4)]
    seeds = (np.random.SeedSequence(entropy, spawn_key=(at,)) for at in range(count))
    return [np.random.Generator(np.random.Philox(seed)) for seed in seeds]


def _mapped(function: Callable[[Any], Any]) -> Callable[[Record[Any]], Record[Any]]:
    return lambda record: Record(record.metadata.remove_record_key(), function(record.data))


def _random(function: Callable[[Any, Any], Any]) -> Callable[[Record[Any]], Record[Any]]:
    return lambda record: Record(record.metadata.remove_record_key(), function(record.data, record.metadata.rng))


def _batched(ds: IterDataset[Any], size: int, drop: bool, batch_fn: Any) -> IterDataset[Any]:
    operation = _operations.BatchOperation(size, drop, batch_fn or make_batch)
    return ds.batch(size, drop_remainder=drop, batch_fn=operation.join)


_NOT_RANDOM = (
    _transforms.Batch,
    _transforms.Filter,
    _transforms.FlatMap,
    _transforms.Map,
    _transforms.MapWithIndex,
    _operations.BatchOperation,
    _operations.FilterOperation,
    _operations.MapOperation,
)


def _apply(ds: IterDataset[Any], operation: Any, behind: Sequence[Any]) -> IterDataset[Any]:
    """Returns `ds`, a stream of records, with an operation or transform applied; `behind` are the later operations."""
    match operation:
        case _transforms.Batch() | _operations.BatchOperation():
            return _batched(ds, operation.batch_size, operation.drop_remainder, operation.batch_fn)
        case _transforms.Map():
            return ds.map(_mapped(operation.map))
        case _transforms.MapWithIndex():
            return ds.map_with_index(
                lambda index, record: Record(
                    record.metadata.remove_record_key(), operation.map_with_index(index, record.data)
                )
            )
        case _operations.MapOperation():
            return ds.map(_mapped(operation.map_function))
        case _transforms.RandomMap():
            return ds.map(_random(operation.random_map))
        case _transforms.TfRandomMap():
            return ds.map(_random(operation.np_random_map))
        case _operations.RandomMapOperation():
            return ds.map(_random(operation.random_map_function))
        case _transforms.Filter():
            return ds.filter(lambda record: operation.filter(record.data))
        case _operations.FilterOperation():
            return ds.filter(lambda record: operation.condition_function(record.data))
        case _transforms.FlatMap():
            is_random = any(not isinstance(other, _NOT_RANDOM) for other in behind)
            return FlatMapIterDataset(ds, _FlatRecords(operation, is_random=is_random))
        case _ if callable(operation):
            return _Ran(ds, cast("Callable[[Iterator[Any]], Iterator[Any]]", operation))
        case _:
            raise NotImplementedError(f"neither a transform nor an operation: {operation!r}")


class DataLoader:
    """A loader that reads a source in the order of a sampler and applies operations."""

    def __init__(
        self,
        *,
        data_source: Any,
        sampler: Any,
        operations: Sequence[Any] = (),
        worker_count: int | None = 0,
        worker_buffer_size: int = 1,
        shard_options: ShardOptions | None = None,
        read_options: ReadOptions | None = None,
        enable_profiling: bool = False,
    ) -> None:
        if worker_count is not None and worker_count < 0:
            raise ValueError(f"Worker count should be greater than or equal zero. Current worker_count is {worker_count}.")
        if worker_count is None:
            worker_count = os.cpu_count() or 0
        self._data_source = data_source
        self._sampler = sampler
        self._operations = list(operations)
        options = shard_options or getattr(sampler, "_shard_options", None)
        if options is None:
            raise ValueError(
                "No shard options were provided: a sampler without them reads every record on every host. "
                "Pass shard_options, such as grain.sharding.NoSharding() or ShardByJaxProcess()"
            )
        self._shard_options: ShardOptions = options
        self._read_options = read_options or ReadOptions()
        self.multiprocessing_options = MultiprocessingOptions(
            num_workers=worker_count, per_worker_buffer_size=worker_buffer_size, enable_profiling=enable_profiling
        )

    def _dataset(self) -> IterDataset[Any]:
        records = _SampledRecords(self._data_source, self._sampler, self._shard_options)
        ds: IterDataset[Any] = records.to_iter_dataset(self._read_options)
        for at, operation in enumerate(self._operations, 1):
            ds = _apply(ds, operation, self._operations[at:])
        return ds.map(lambda record: record.data).mp_prefetch(self.multiprocessing_options)

    def __iter__(self) -> "DataLoaderIterator":
        return DataLoaderIterator(self)


def _named(source: Any) -> str:
    """Returns a source's name in states: its `repr`, or type and length if the `repr` would print all elements."""
    if isinstance(source, (list, tuple)) or hasattr(source, "__array__"):
        return f"{type(cast(Any, source)).__name__} of {len(cast(Any, source))}"
    return repr(source)


def _named_by_grain(source: Any) -> str:
    """Returns a source's name in Grain's states."""
    return str(type(source)) if isinstance(source, (list, tuple, np.ndarray)) else repr(source)


class DataLoaderIterator(Iterator[Any]):
    """A pass over a `DataLoader`. Its state is JSON as bytes."""

    def __init__(self, data_loader: DataLoader) -> None:
        self._data_loader = data_loader
        self._iterator: DatasetIterator[Any] = data_loader._dataset().__iter__()

    def __iter__(self) -> "DataLoaderIterator":
        return self

    def __next__(self) -> Any:
        return next(self._iterator)

    def start_prefetch(self) -> None:
        """Starts to prefetch."""
        self._iterator.start_prefetch()

    def close(self) -> None:
        """Stops prefetching and ends the pass."""
        self._iterator.close()

    def _identity(self, named: Callable[[Any], str] = _named) -> dict[str, str]:
        loader = self._data_loader
        return {"sampler": repr(loader._sampler), "data_source": named(loader._data_source)}

    def get_state(self) -> bytes:
        """Returns the position, with the names of sampler and source."""
        state = {"version": _loader_states.VERSION, "position": self._iterator.get_state(), **self._identity()}
        return json.dumps(state, indent=4).encode()

    def set_state(self, state: bytes) -> None:
        """Moves to a state of this class or of Grain. Raises `ValueError` if sampler or source differ."""
        given = cast("dict[str, Any]", json.loads(state.decode()))
        loader, of_grain = self._data_loader, _loader_states.is_of_grain(given)
        for name, ours in self._identity(_named_by_grain if of_grain else _named).items():
            # Grain's states omit the names after a flat map.
            if given.get(name, ours) != ours:
                raise ValueError(
                    f"{name} in checkpoint does not match dataloader {name}. Checkpoint: {given[name]}, dataloader: {ours}"
                )
        if of_grain:
            self._iterator.set_state(_loader_states.position(given, loader._shard_options, loader._operations))
        elif given["version"] == _loader_states.VERSION and "position" in given:
            self._iterator.set_state(given["position"])
        else:
            raise ValueError(f"the state is not of this loader: its version is {given['version']}")

    async def save(self, directory: Any) -> Awaitable[None]:
        """Takes the state now, and writes it to a folder of an Orbax checkpoint once the awaitable is awaited."""
        return await orbax.save(self, directory)

    async def load(self, directory: Any) -> Awaitable[None]:
        """Restores the state that `save` wrote, once the returned awaitable is awaited."""
        return await orbax.load(self, directory)

    def __str__(self) -> str:
        return f"PyGrainDatasetIterator(state={self.get_state().decode()})"
