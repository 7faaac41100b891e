"""Which rows a process loads: those that its devices hold."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import jax

from gristmill import _errors

# Many of JAX's functions are typed in part, which strict checkers take for an error wherever they are called.
_jax = cast("Any", jax)


def shard_for(sharding: jax.sharding.Sharding, global_batch: int | None = None) -> tuple[int, int]:
    """The shard that this process loads, `index` of `count`: its rows are those which the process's devices hold.

    It follows from the devices of `sharding` along the leading axis and not from `jax.process_index()`: processes whose
    devices hold the same rows load the same shard. The order is: shard, then batch by `global_batch // count`, then
    `device_put`. Batch `k` of all shards together then has the elements of batch `k` of the whole, one shard behind the
    other.

    With `global_batch`, that many rows must be divisible as `sharding` says.

    Raises `gristmill.ConfigError` where a process holds rows that are not one block, where the blocks of processes
    overlap or differ in size, and where this process has no device in `sharding`; on every process that asks alike.
    """
    if global_batch is not None and global_batch < 1:
        raise _errors.make("config", f"a global batch of {global_batch} rows; it has at least 1", None)
    axes = 1
    if isinstance(sharding, jax.sharding.NamedSharding):
        axes = max(1, len(sharding.spec))
    # What a mesh divides an axis into divides the number of its devices.
    where = cast("Any", sharding)
    devices = len(where.device_set)
    rows = devices if global_batch is None else global_batch
    try:
        places = where.devices_indices_map((rows, *[devices] * (axes - 1)))
    except ValueError as refused:
        raise _errors.make("config", f"a global batch of {rows} rows cannot be sharded: {refused}", None) from refused
    blocks: dict[int, set[tuple[int, int]]] = {}
    for device, indices in places.items():
        start, stop, _ = indices[0].indices(rows) if indices else (0, rows, 1)
        blocks.setdefault(device.process_index, set()).add((start, stop))
    return shard_of(_jax.process_index(), rows, blocks)


def shard_of(process: int, rows: int, blocks: Mapping[int, set[tuple[int, int]]]) -> tuple[int, int]:
    """The shard of `process`, where the devices of each process hold these blocks of so many rows."""
    spans = {owner: _span(owner, parts) for owner, parts in sorted(blocks.items())}
    first, (begin, end) = next(iter(spans.items()))
    size = end - begin
    for owner, (start, stop) in spans.items():
        if stop - start != size or start % size != 0:
            held = f"process {owner} holds rows {start} to {stop} of {rows}, process {first} rows {begin} to {end}"
            message = f"the shards of the processes are uneven: {held}"
            raise _errors.make("config", message, "put whole processes side by side along the mesh's data axis")
    if process not in spans:
        message = f"process {process} has no device in the sharding; it is over processes {list(spans)}"
        raise _errors.make("config", message, None)
    return spans[process][0] // size, rows // size


def _span(process: int, parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The one block that several adjoining ones are."""
    ordered = sorted(parts)
    for (_, before), (start, _) in zip(ordered, ordered[1:], strict=False):
        if start != before:
            message = f"the rows of process {process} are not contiguous: its devices hold {ordered}"
            raise _errors.make("config", message, "order the mesh so that the devices of a process lie side by side")
    return ordered[0][0], ordered[-1][1]
