"""Batches on JAX's devices: sent ahead of the step that needs them, sharded, and resumed where the trainer was.

Imported when it is first used, as `gristmill.jax`; it needs JAX.
"""

import copy
from collections import deque
from collections.abc import Awaitable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import numpy as np

from gristmill import _errors, orbax
from gristmill._gristmill import DatasetIterator, IterDataset, MapDataset, Report

try:
    import jax
except ModuleNotFoundError as _missing:
    if _missing.name != "jax":
        raise
    raise ModuleNotFoundError("gristmill.jax needs JAX: pip install jax", name="jax") from None

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
    return _shard_of(_jax.process_index(), rows, blocks)


def _shard_of(process: int, rows: int, blocks: Mapping[int, set[tuple[int, int]]]) -> tuple[int, int]:
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


def device_put(
    ds: IterDataset | MapDataset | DatasetIterator,
    sharding: Any = None,
    buffer: int = 2,
    *,
    global_batch: int | None = None,
) -> "DeviceIterator":
    """The batches of `ds` as JAX arrays, `buffer` of them sent ahead of the one that the consumer has.

    `ds` is a dataset, or a pass that was started: `ds.loader(threads=4)` makes batches on threads of its own, while
    the transfers are started by whoever calls `next`. `sharding` is a device, a `jax.sharding.Sharding`, or a tree of
    them that is a prefix of the batches' own; without it, the batches go to JAX's default device.

    Where `sharding` reaches over several processes, each of them gives its part, that of `shard_for`, and
    `global_batch` says how many rows all parts have together: a batch that is short on one process is an error there.
    All processes must make the same number of batches, or those that make more wait for the others in their steps.

    Batches are trees (dicts, tuples, lists, whatever JAX knows) of numeric arrays and numbers. As everywhere in JAX,
    64-bit numbers become 32-bit ones unless `jax_enable_x64` is set; whole numbers that do not fit are refused.

    JAX may read the memory of a batch while the transfer runs, and on a CPU share it for good. Memory of gristmill is
    read-only and not used again while any array views it, so that is safe; a batch is held until it has arrived. A
    Python function that returns the same array again and again must return copies.
    """
    return DeviceIterator(ds, sharding, buffer, global_batch)


class _Sent(NamedTuple):
    """A batch under way, the host's memory it comes from, and the state behind it."""

    batch: Any
    host: Any
    state: dict[str, Any]

    def has_arrived(self) -> bool:
        """Of what was donated since nothing is known; JAX itself holds the memory that it still reads."""
        return all(array.is_deleted() or array.is_ready() for array in _jax.tree_util.tree_leaves(self.batch))

    def wait(self) -> None:
        for array in _jax.tree_util.tree_leaves(self.batch):
            if not array.is_deleted():
                array.block_until_ready()


class DeviceIterator(Iterator[Any]):
    """A pass whose batches are JAX arrays: made by `device_put`, for one thread.

    Its state is where the consumer is, whatever was sent ahead. What goes wrong with a batch is raised when that batch
    is due; the pass ends there.
    """

    def __init__(
        self,
        ds: IterDataset | MapDataset | DatasetIterator,
        sharding: Any,
        buffer: int,
        global_batch: int | None,
    ) -> None:
        if buffer < 0:
            raise _errors.make("config", f"a buffer of {buffer} batches; it is at least 0", None)
        self._target = _Target(sharding, global_batch)
        self._buffer = buffer
        self._source = ds if isinstance(ds, DatasetIterator) else ds.loader()
        self._ahead: deque[_Sent] = deque()
        # Delivered, but not known to have arrived.
        self._held: deque[_Sent] = deque()
        self._start_at(self._source.get_state())
        self._closed = False

    def _start_at(self, state: dict[str, Any]) -> None:
        self._state = self._sent_state = state
        self._failure: Exception | None = None
        self._ended = False
        # Whether the source may be ahead of what was sent, after an interrupt.
        self._astray = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._closed:
            raise ValueError("the iterator is closed")
        while self._held and self._held[0].has_arrived():
            self._held.popleft()
        self.start_prefetch()
        if not self._ahead:
            failure, self._failure = self._failure, None
            raise failure or StopIteration
        sent = self._ahead.popleft()
        if not sent.has_arrived():
            self._held.append(sent)
        self._state = sent.state
        return sent.batch

    def _send(self) -> None:
        """Sends the next batch, or notes why there is none."""
        if self._astray:
            self._source.set_state(self._sent_state)
        self._astray = True
        try:
            host = next(self._source)
            state = self._source.get_state()
            self._ahead.append(_Sent(self._target.put(host), host, state))
            self._sent_state = state
        except StopIteration:
            self._ended = True
        except Exception as failure:
            self._ended, self._failure = True, failure
        self._astray = False

    def get_state(self) -> dict[str, Any]:
        """Where the consumer is, whatever was sent ahead: positions, which JSON can hold."""
        return copy.deepcopy(self._state)

    def set_state(self, state: Mapping[str, Any] | str | bytes) -> None:
        """Goes to where `state` was taken: by this iterator, or by that of the same dataset without `device_put`."""
        self._source.set_state(state)
        self._forget()
        self._start_at(self._source.get_state())

    def start_prefetch(self) -> None:
        """Sends the first batches off before the first `next`."""
        while len(self._ahead) <= self._buffer and not self._ended and not self._closed:
            self._send()

    def save(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """Orbax's protocol of objects that save themselves: see `gristmill.orbax`."""
        return orbax.save(self, directory)

    def load(self, directory: Any) -> Coroutine[Any, Any, Awaitable[None]]:
        """The way back."""
        return orbax.load(self, directory)

    def report(self) -> Report:
        """Where the time went so far, on the host."""
        return self._source.report()

    def close(self) -> None:
        """Ends the pass, also the one that was handed in, and waits for the transfers that are under way."""
        self._closed = True
        self._source.close()
        self._forget()

    def _forget(self) -> None:
        for sent in (*self._held, *self._ahead):
            sent.wait()
        self._held.clear()
        self._ahead.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()


class _Target:
    """Where batches go."""

    def __init__(self, sharding: Any, global_batch: int | None) -> None:
        self._sharding = sharding
        self._global_batch = global_batch
        # Of each sharding that reaches over several processes, how many parts it has.
        self._parts: dict[jax.sharding.Sharding, int] = {}
        for leaf in _jax.tree_util.tree_leaves(sharding):
            if isinstance(leaf, jax.sharding.Sharding) and not leaf.is_fully_addressable:
                self._parts[leaf] = shard_for(leaf, global_batch)[1]
        if any(parts > 1 for parts in self._parts.values()) and global_batch is None:
            message = "a sharding over several processes needs `global_batch`, the rows of all processes together"
            raise _errors.make("config", message, None)

    def put(self, batch: Any) -> Any:
        """Starts the transfer."""
        for path, leaf in _jax.tree_util.tree_flatten_with_path(batch)[0]:
            _check(f"batch{_jax.tree_util.keystr(path)}", leaf)
        if not self._parts:
            return _jax.device_put(batch, self._sharding)

        # The tree of shardings is a prefix of the batch's.
        def put_part(sharding: Any, part: Any) -> Any:
            return _jax.tree_util.tree_map(partial(self._put_leaf, sharding), part)

        return _jax.tree_util.tree_map(put_part, self._sharding, batch)

    def _put_leaf(self, sharding: Any, leaf: Any) -> Any:
        parts = self._parts.get(sharding)
        if parts is None:
            return _jax.device_put(leaf, sharding)
        local = np.asarray(leaf)
        shape = local.shape
        if parts > 1:
            # Without the explicit shape, processes with batches of different sizes would not notice.
            if not shape or shape[0] * parts != self._global_batch:
                held = f"a batch of shape {shape} on this process, one of {parts}"
                message = f"{held}; all have {self._global_batch} rows"
                raise _errors.make("data", message, "batch(…, drop_remainder=True) gives every process whole batches")
            shape = (shape[0] * parts, *shape[1:])
        return _jax.make_array_from_process_local_data(sharding, local, shape)


def _check(name: str, leaf: Any) -> None:
    """Refuses what a device cannot hold."""
    if isinstance(leaf, (bool, int, float, complex, jax.Array)):
        return
    dtype = getattr(leaf, "dtype", None)
    numeric = isinstance(dtype, np.dtype) and (dtype.kind in "biufc" or _jax.dtypes.issubdtype(dtype, np.number))
    if not numeric:
        kind = f"an array of {dtype}" if isinstance(dtype, np.dtype) else type(leaf).__name__
        message = f"{name} is {kind}, and a device holds numbers only"
        raise _errors.make("data", message, "leave it out in front of `batch`: `.drop_columns(…)`, or `.map(…)`")
    _check_narrowing(name, np.asarray(leaf))


def _check_narrowing(name: str, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return
    narrow = _jax.dtypes.canonicalize_dtype(array.dtype)
    if narrow == array.dtype:
        return
    limits, low, high = np.iinfo(narrow), int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        message = f"{name} is {array.dtype} and has {low} to {high}, which exceeds the {narrow} that JAX makes of it"
        raise _errors.make("data", message, "set `jax_enable_x64`, or bring the numbers into range")
