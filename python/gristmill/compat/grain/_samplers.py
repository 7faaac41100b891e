"""Orders of the records of a `DataLoader`."""

from typing import Any, Protocol

import numpy as np

from gristmill.compat.grain._dataset import INFINITE, MapDataset
from gristmill.compat.grain._record import RecordMetadata
from gristmill.compat.grain._sharding import NoSharding, ShardOptions, even_split


class Sampler(Protocol):
    """A sampler for a `DataLoader`."""

    def __getitem__(self, index: int) -> RecordMetadata:
        """Returns the record at position `index` of the stream over all shards."""
        ...


def _refuse_no_records(num_records: int) -> None:
    if num_records <= 0:
        raise ValueError(
            f"Invalid number of records in Sampler. Got {num_records} records, "
            "but number of records must be greater than 0."
        )


def _rng(seed: int | None, index: int) -> np.random.Generator | None:
    return None if seed is None else np.random.Generator(np.random.Philox(key=seed + index))


def _out_of_bounds(index: int, limit: int) -> IndexError:
    return IndexError(
        f"RecordMetadata object index is out of bounds; Got index {index}, allowed indices should be in [0, {limit}]"
    )


class SequentialSampler:
    """Records in order, once."""

    def __init__(
        self, num_records: int, shard_options: ShardOptions | None = None, seed: int | None = None
    ) -> None:
        _refuse_no_records(num_records)
        self._num_records = num_records
        self._shard_options = shard_options or NoSharding()
        self._seed = seed
        rest = num_records % self._shard_options.shard_count
        self._max_index = num_records - rest if self._shard_options.drop_remainder else num_records

    def __len__(self) -> int:
        return self._max_index

    def __repr__(self) -> str:
        return f"SequentialSampler(num_records={self._num_records}, shard_options={self._shard_options!r})"

    def __getitem__(self, index: int) -> RecordMetadata:
        if not 0 <= index < self._max_index:
            raise _out_of_bounds(index, self._max_index)
        return RecordMetadata(index=index, record_key=index, rng=_rng(self._seed, index))


class _ShardMapDataset(MapDataset[Any]):
    """The records of a shard, which are consecutive."""

    def __init__(self, parent: MapDataset[Any], shard_options: ShardOptions) -> None:
        super().__init__(parent)
        self._start, self._end = even_split(len(parent), shard_options)

    def __len__(self) -> int:
        return self._end - self._start

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        epoch, at = divmod(index, len(self))
        return self._parent[epoch * len(self._parent) + self._start + at]


class IndexSampler:
    """Records of a shard, shuffled and repeated."""

    def __init__(
        self,
        num_records: int,
        shard_options: ShardOptions | None = None,
        shuffle: bool = False,
        num_epochs: int | None = None,
        seed: int | None = None,
    ) -> None:
        _refuse_no_records(num_records)
        if num_epochs is not None and num_epochs <= 0:
            raise ValueError(
                f"Invalid number of epochs in Index Sampler. Got {num_epochs} epochs, "
                "but number of epochs must be greater than 0."
            )
        if shuffle and seed is None:
            raise ValueError("Shuffling requires specifying a seed.")
        if seed is not None:
            if not isinstance(seed, int):
                raise TypeError(f"Expected seed of int type. Got seed with type {type(seed)}")
            if seed < 0 or seed.bit_length() > 32:
                raise ValueError("Seed should be positive 32-bit integer.")
        self._num_records = num_records
        self._shard_options = shard_options or NoSharding()
        self._shuffle = shuffle
        self._num_epochs = num_epochs
        self._seed = seed
        self._record_keys: MapDataset[Any] = MapDataset.range(num_records)
        self._max_index = None if num_epochs is None else num_epochs * num_records
        if not isinstance(self._shard_options, NoSharding):
            self._shard(num_epochs)
        if shuffle:
            self._record_keys = self._record_keys.shuffle(seed)

    def _shard(self, num_epochs: int | None) -> None:
        options = self._shard_options
        self._record_keys = _ShardMapDataset(self._record_keys, options)
        if self._max_index is not None and num_epochs is not None and options.drop_remainder:
            self._max_index = min(self._max_index, len(self._record_keys) * options.shard_count * num_epochs)

    def __len__(self) -> int:
        return INFINITE if self._max_index is None else self._max_index

    def __repr__(self) -> str:
        return (
            f"IndexSampler(num_records={self._num_records}, shard_options={self._shard_options!r}, "
            f"shuffle={self._shuffle}, num_epochs={self._num_epochs}, seed={self._seed})"
        )

    def __getitem__(self, index: int) -> RecordMetadata:
        if not 0 <= index < len(self):
            raise _out_of_bounds(index, len(self))
        key = self._record_keys[index // self._shard_options.shard_count]
        return RecordMetadata(index=index, record_key=key, rng=_rng(self._seed, index))
