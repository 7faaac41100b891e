"""The rows that a process loads: the rows that its devices hold."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import jax

from gristmill import _errors
from gristmill._gristmill import Part
from gristmill.jax import _hosts

# JAX functions are only partly typed, which strict checkers reject at each call.
_jax = cast("Any", jax)


def part_for(sharding: jax.sharding.Sharding, global_batch: int) -> Part:
    """Returns the part of every global batch that this process loads: the rows its devices hold.

    Pass the part to `ds.loader(part=…)`. It follows from the devices of `sharding` along the leading axis, not from
    `jax.process_index()`: processes whose devices hold the same rows, such as tensor- and pipeline-parallel peers, get
    the same part. The part is a share, `Part(index, count)`, if the rows of all processes are blocks of one size; else
    it lists the rows in order.

    All processes use one and the same pipeline, which makes batches of `global_batch` rows. The part includes a
    connection to the other processes, by which a loader compares their data: see `guard` of `loader`.

    Args:
        sharding: Sharding of batches over devices.
        global_batch: Rows of a batch over all processes.

    Raises:
        ConfigError: The number of rows cannot be sharded, or this process has no device in `sharding`.
    """
    blocks = _blocks(sharding, global_batch)
    process: int = _jax.process_index()
    try:
        part = Part(*shard_of(process, global_batch, blocks))
    except _errors.ConfigError:
        part = Part.listed(_held(process, blocks), global_batch)
    return _hosts.guarded(part, sorted(blocks))


def rows_held(sharding: jax.sharding.Sharding, global_batch: int) -> list[int]:
    """Returns the rows of a batch that the devices of this process hold, in order."""
    return _held(_jax.process_index(), _blocks(sharding, global_batch))


def _held(process: int, blocks: Mapping[int, set[tuple[int, int]]]) -> list[int]:
    _check_there(process, blocks)
    return sorted({row for start, stop in blocks[process] for row in range(start, stop)})


def _check_there(process: int, blocks: Mapping[int, Any]) -> None:
    if process not in blocks:
        message = f"process {process} has no device in the sharding, which has devices of processes {sorted(blocks)}"
        raise _errors.make("config", message, None)


def shard_for(sharding: jax.sharding.Sharding, global_batch: int | None = None) -> tuple[int, int]:
    """Returns the shard that this process loads, as (index, count): the rows its devices hold.

    It follows from the devices of `sharding` along the leading axis, not from `jax.process_index()`: processes whose
    devices hold the same rows load the same shard. Shard first, then batch by `global_batch // count`, then call
    `device_put`. Batch `k` of all shards, concatenated in order of shards, then has the elements of batch `k` of the
    whole dataset.

    If `global_batch` is given, that number of rows must be divisible as `sharding` requires.

    Raises `gristmill.ConfigError`, on all calling processes alike, if the rows of a process are not a single block, or
    if the blocks of processes overlap or differ in size. Also raises it if this process has no device in `sharding`.
    """
    if global_batch is None:
        # Valid for every mesh: the number of parts of an axis divides the number of devices.
        global_batch = len(cast("Any", sharding).device_set)
    return shard_of(_jax.process_index(), global_batch, _blocks(sharding, global_batch))


def _blocks(sharding: jax.sharding.Sharding, rows: int) -> dict[int, set[tuple[int, int]]]:
    """Returns the blocks of rows, as (start, stop), that the devices of each process hold, out of `rows` rows."""
    if rows < 1:
        raise _errors.make("config", f"global_batch is {rows}, and must be 1 or more", None)
    axes = 1
    if isinstance(sharding, jax.sharding.NamedSharding):
        axes = max(1, len(sharding.spec))
    where = cast("Any", sharding)
    devices = len(where.device_set)
    try:
        places = where.devices_indices_map((rows, *[devices] * (axes - 1)))
    except ValueError as refused:
        raise _errors.make("config", f"a global batch of {rows} rows cannot be sharded: {refused}", None) from refused
    blocks: dict[int, set[tuple[int, int]]] = {}
    for device, indices in places.items():
        start, stop, _ = indices[0].indices(rows) if indices else (0, rows, 1)
        blocks.setdefault(device.process_index, set()).add((start, stop))
    return blocks


def shard_of(process: int, rows: int, blocks: Mapping[int, set[tuple[int, int]]]) -> tuple[int, int]:
    """Returns the shard of `process`, given the blocks of `rows` rows that the devices of each process hold."""
    spans = {owner: _span(owner, parts) for owner, parts in sorted(blocks.items())}
    first, (begin, end) = next(iter(spans.items()))
    size = end - begin
    for owner, (start, stop) in spans.items():
        if stop - start != size or start % size != 0:
            held = f"process {owner} holds rows {start} to {stop} of {rows}, process {first} rows {begin} to {end}"
            message = f"the shards of the processes are uneven: {held}"
            raise _errors.make("config", message, "order the mesh so that each process has an equal block along the data axis")
    _check_there(process, spans)
    return spans[process][0] // size, rows // size


def _span(process: int, parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Returns the union of adjoining blocks."""
    ordered = sorted(parts)
    for (_, before), (start, _) in zip(ordered, ordered[1:], strict=False):
        if start != before:
            message = f"the rows of process {process} are not contiguous: its devices hold {ordered}"
            raise _errors.make("config", message, "order the mesh so that the devices of a process are adjacent")
    return ordered[0][0], ordered[-1][1]
