"""Construction of a `DataLoader` by one function."""

from collections.abc import Sequence
from typing import Any

from gristmill.compat.grain import _transforms
from gristmill.compat.grain._data_loader import DataLoader
from gristmill.compat.grain._options import ReadOptions
from gristmill.compat.grain._samplers import IndexSampler
from gristmill.compat.grain._sharding import NoSharding, ShardOptions


def load(
    source: Any,
    *,
    num_epochs: int | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    shard_options: ShardOptions | None = None,
    transformations: Sequence[Any] = (),
    batch_size: int | None = None,
    drop_remainder: bool = False,
    worker_count: int | None = 0,
    read_options: ReadOptions | None = None,
) -> DataLoader:
    """Returns a loader of `source` with an `IndexSampler`, `transformations` and, optionally, batches."""
    sampler = IndexSampler(len(source), shard_options or NoSharding(), shuffle, num_epochs, seed)
    operations = list(transformations)
    if batch_size is not None:
        operations.append(_transforms.Batch(batch_size, drop_remainder))
    return DataLoader(
        data_source=source,
        sampler=sampler,
        operations=operations,
        worker_count=worker_count,
        read_options=read_options,
    )
