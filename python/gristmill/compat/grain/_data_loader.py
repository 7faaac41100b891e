"""A source, a sampler and operations in one object: the interface before datasets.

DIFFERENCE: what it yields does not depend on `worker_count`, and a state restores for any.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from gristmill.compat.grain import _operations, _transforms
from gristmill.compat.grain._batch import make_batch
from gristmill.compat.grain._dataset import IterDataset, MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._flatmap import FlatMapIterDataset
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions
from gristmill.compat.grain._record import Record
from gristmill.compat.grain._sharding import NoSharding, ShardOptions

_VERSION = 2


def _length(sampler: Any) -> int:
    """The length of a sampler; of one that does not say it, the first index that it refuses."""
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


class _SampledRecords(MapDataset[Record[Any]]):
    """The records of one shard in the order of the sampler."""

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
        return Record(metadata=metadata, data=self._source[metadata.record_key])


class _Ran(IterDataset[Any]):
    """An operation of the user's own, which has no state: after a resume it reads again from the start."""

    def __init__(self, parent: IterDataset[Any], operation: Callable[[Iterator[Any]], Iterator[Any]]) -> None:
        super().__init__(parent)
        self._operation = operation

    def __iter__(self) -> Any:
        return self._operation(iter(self._parent))


class _FlatRecords(_transforms.FlatMap):
    def __init__(self, transform: _transforms.FlatMap) -> None:
        self._transform = transform
        self.max_fan_out = transform.max_fan_out

    def flat_map(self, element: Record[Any]) -> Sequence[Record[Any]]:
        metadata = element.metadata.remove_record_key()
        return [Record(metadata, data) for data in self._transform.flat_map(element.data)]


def _mapped(function: Callable[[Any], Any]) -> Callable[[Record[Any]], Record[Any]]:
    return lambda record: Record(record.metadata.remove_record_key(), function(record.data))


def _random(function: Callable[[Any, Any], Any]) -> Callable[[Record[Any]], Record[Any]]:
    return lambda record: Record(record.metadata.remove_record_key(), function(record.data, record.metadata.rng))


def _batched(ds: IterDataset[Any], size: int, drop: bool, batch_fn: Any) -> IterDataset[Any]:
    operation = _operations.BatchOperation(size, drop, batch_fn or make_batch)
    return ds.batch(size, drop_remainder=drop, batch_fn=operation.join)


def _apply(ds: IterDataset[Any], operation: Any) -> IterDataset[Any]:
    """`ds`, a stream of records, behind one operation or transform."""
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
            return FlatMapIterDataset(ds, _FlatRecords(operation))
        case _ if callable(operation):
            return _Ran(ds, cast("Callable[[Iterator[Any]], Iterator[Any]]", operation))
        case _:
            raise NotImplementedError(f"neither a transform nor an operation: {operation!r}")


class DataLoader:
    """Reads a source in the order of a sampler, through operations."""

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
        self._shard_options: ShardOptions = options or NoSharding()
        self._read_options = read_options or ReadOptions()
        self.multiprocessing_options = MultiprocessingOptions(
            num_workers=worker_count, per_worker_buffer_size=worker_buffer_size, enable_profiling=enable_profiling
        )

    def _dataset(self) -> IterDataset[Any]:
        records = _SampledRecords(self._data_source, self._sampler, self._shard_options)
        ds: IterDataset[Any] = records.to_iter_dataset(self._read_options)
        for operation in self._operations:
            ds = _apply(ds, operation)
        return ds.map(lambda record: record.data).mp_prefetch(self.multiprocessing_options)

    def __iter__(self) -> "DataLoaderIterator":
        return DataLoaderIterator(self)


def _named(source: Any) -> str:
    """What a source calls itself; of what would print all its elements, their number."""
    if isinstance(source, (list, tuple)) or hasattr(source, "__array__"):
        return f"{type(cast(Any, source)).__name__} of {len(cast(Any, source))}"
    return repr(source)


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
        """Begins to read ahead."""
        self._iterator.start_prefetch()

    def close(self) -> None:
        """Ends what reads ahead."""
        self._iterator.close()

    def _identity(self) -> dict[str, str]:
        loader = self._data_loader
        return {"sampler": repr(loader._sampler), "data_source": _named(loader._data_source)}

    def get_state(self) -> bytes:
        """Where it is, and what it reads."""
        state = {"version": _VERSION, "position": self._iterator.get_state(), **self._identity()}
        return json.dumps(state, indent=4).encode()

    def set_state(self, state: bytes) -> None:
        """Goes to where `state` was taken, unless that was of another sampler or source."""
        given = cast("dict[str, Any]", json.loads(state.decode()))
        if given.get("version") != _VERSION or "position" not in given:
            raise ValueError(f"the state is not of this loader: its version is {given.get('version')}")
        for name, ours in self._identity().items():
            if given[name] != ours:
                raise ValueError(
                    f"{name} in checkpoint does not match dataloader {name}. Checkpoint: {given[name]}, dataloader: {ours}"
                )
        self._iterator.set_state(given["position"])

    def __str__(self) -> str:
        return f"PyGrainDatasetIterator(state={self.get_state().decode()})"
