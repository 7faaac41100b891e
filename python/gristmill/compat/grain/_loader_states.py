"""Conversion of states of Grain's `DataLoader` to positions of this package."""

from collections.abc import Mapping, Sequence
from typing import Any

from gristmill.compat.grain import _operations, _transforms
from gristmill.compat.grain._sharding import ShardOptions

# Version of Grain's format. This package writes the same number.
VERSION = 2
# Operations with one output per input. After them, the workers' elements in turn equal the stream without workers.
_ONE_TO_ONE = (
    _transforms.Map,
    _transforms.RandomMap,
    _transforms.TfRandomMap,
    _operations.MapOperation,
    _operations.RandomMapOperation,
)
# All operations that a loader supports, except custom operations.
_KNOWN = (
    *_ONE_TO_ONE,
    _transforms.Batch,
    _transforms.Filter,
    _transforms.FlatMap,
    _transforms.MapWithIndex,
    _operations.BatchOperation,
    _operations.FilterOperation,
)


def is_of_grain(state: Mapping[str, Any]) -> bool:
    """Returns whether Grain wrote the state. After a flat map Grain writes the state of a dataset only."""
    return "last_seen_indices" in state or "version" not in state


def position(state: dict[str, Any], shard: ShardOptions, operations: Sequence[Any]) -> dict[str, Any]:
    """Returns the position, in a pass over the records of `shard`, that corresponds to `state`.

    DIFFERENCE: a state of several workers is restored if all operations have one output per input. After other
    operations Grain's data depends on the number of workers, so such a state is an error.
    """
    workers = state.get("worker_count", 0)
    if "iterators_in_use_states" in state or workers > 0 and not all(isinstance(one, _ONE_TO_ONE) for one in operations):
        raise ValueError(
            "the state is of Grain's with workers: its elements depend on their number, and there is no such place here. "
            "Go on from a state without workers, or finish the epoch with Grain"
        )
    if not all(isinstance(one, _KNOWN) for one in operations):
        raise ValueError(
            "the state is of Grain's with an operation of one's own, of which it does not say what that has kept: there is no such "
            "place here. Finish the epoch with Grain"
        )
    if "last_seen_indices" not in state:
        return state
    readers = max(workers, 1)
    step = readers * shard.shard_count
    read = [
        (last + step - shard.shard_index - int(worker) * shard.shard_count) // step
        for worker, last in state["last_seen_indices"].items()
    ]
    return {"next_index": sum(read)}
