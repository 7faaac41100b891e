"""Division of the data among processes."""

import dataclasses
import logging
from importlib import import_module
from typing import Any


@dataclasses.dataclass(frozen=True)
class ShardOptions:
    """Shard `shard_index` of `shard_count`. With `drop_remainder` all shards have an equal size."""

    shard_index: int
    shard_count: int
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        if self.shard_count <= 0:
            raise ValueError(f"Number of shards must be a positive integer but got {self.shard_count}.")
        if not 0 <= self.shard_index < self.shard_count:
            raise ValueError(
                "Shard shard_index must be in [0, shard_count - 1], "
                f"shard_count was {self.shard_count} and shard_index was {self.shard_index}."
            )


class NoSharding(ShardOptions):
    """A single shard: every process reads all data."""

    def __init__(self) -> None:
        super().__init__(shard_index=0, shard_count=1)


class ShardByJaxProcess(ShardOptions):
    """A shard for each JAX process."""

    def __init__(self, drop_remainder: bool = False) -> None:
        index, count = get_process_index_and_count()
        super().__init__(shard_index=index, shard_count=count, drop_remainder=drop_remainder)


def even_split(num_examples: int, options: ShardOptions) -> tuple[int, int]:
    """Returns the range of a shard as (start, end). Shards are consecutive, and the first shards may be longer."""
    size, rest = divmod(num_examples, options.shard_count)
    if options.drop_remainder:
        if rest:
            logging.getLogger(__name__).warning(
                "Dropping %d examples of %d examples (shard %d).", rest, num_examples, options.shard_count
            )
        rest = 0

    def start(shard: int) -> int:
        return shard * size + min(shard, rest)

    return start(options.shard_index), start(options.shard_index + 1)


def get_process_index_and_count() -> tuple[int, int]:
    """Returns the index of this process among JAX processes and their number; (0, 1) without JAX."""
    try:
        jax: Any = import_module("jax")
    except ImportError:
        return 0, 1
    return jax.process_index(), jax.process_count()
