"""Batches as tensors of PyTorch, with or without its `DataLoader`.

The module `gristmill.torch` is imported at its first use. It requires PyTorch.
"""

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gristmill import _errors, _gristmill, _hosts, _optional
from gristmill._closing import Closing
from gristmill._fork import Origin
from gristmill._gristmill import DatasetIterator, MapDataset, Part, Report
from gristmill._gristmill import IterDataset as _IterDataset
from gristmill._transfer import transferring
from gristmill._tree import walk

try:
    import torch  # pyright: ignore[reportMissingImports]
    import torch.utils.data as _torch_data  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError as _missing:
    raise _optional.needed(_missing, "torch", "PyTorch") from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from gristmill._options import LoaderOptions

# PyTorch's functions are partly typed. Strict checkers report an error for each call.
_torch, _data = cast("Any", torch), cast("Any", _torch_data)

_check_loader_options: Callable[..., None] = getattr(_gristmill, "_check_loader_options")
_FORMAT = 1


def to_tensors(tree: Any, *, pin_memory: bool = False) -> Any:
    """Returns `tree` with tensors in place of its arrays of numbers. Other leaves, such as text, stay unchanged.

    A tensor shares the memory of a writable array. PyTorch has no read-only tensors, so read-only arrays are copied;
    `loader(writable=True)` yields writable arrays. With `pin_memory` and CUDA, every array is copied once into page-locked memory,
    from which `tensor.to(device, non_blocking=True)` returns without waiting.
    """
    pinned = pin_memory and bool(_torch.cuda.is_available())
    convert = _pinned if pinned else _tensor
    return walk(tree, lambda _, leaf: _converted(leaf, convert), of_jax=False)


def _converted(leaf: Any, convert: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    if isinstance(leaf, list):
        # In a list that is a leaf, numbers of NumPy count as numbers of Python.
        return [_converted(part, convert) for part in cast("Any", leaf)]
    if not isinstance(leaf, (np.ndarray, np.generic)):
        return leaf
    array = np.asarray(cast("Any", leaf))
    return convert(array) if array.dtype.kind in "biufc" or array.dtype.name == "bfloat16" else cast("Any", leaf)


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    # PyTorch also requires native byte order and no negative strides.
    plain = array.flags.writeable and array.dtype.isnative and min(array.strides, default=0) >= 0
    return _shared(array if plain else np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def _shared(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.name == "bfloat16":
        # NumPy and PyTorch have different names for the type.
        return _torch.from_numpy(array.view(np.int16)).view(_torch.bfloat16)
    return _torch.from_numpy(array)


def _pinned(array: np.ndarray[Any, Any]) -> Any:
    like = _shared(np.empty(0, array.dtype.newbyteorder("=")))
    tensor = _torch.empty(array.shape, dtype=like.dtype, pin_memory=True)
    target = tensor.view(_torch.int16).numpy().view(array.dtype) if like.dtype == _torch.bfloat16 else tensor.numpy()
    np.copyto(target, array)
    return tensor


def varlen(batch: Mapping[str, Any], column: str = "tokens", *, ignore_index: int = -100) -> dict[str, Any]:
    """Returns packed rows as the arguments of `transformers` models with FlashAttention. Attention does not cross documents.

    The rows are joined to one row of B·T tokens. The padding of each row is a separate sequence.

    Args:
        batch: A batch of packed rows of shape [B, T]: `column`, and its `…_segment_ids`, which are 0 for padding.
        column: The column of token ids.
        ignore_index: The label of padding, and of the first token of each document, which has no token before it.

    Returns:
        `input_ids`, `labels` and `position_ids`, int64 of shape [1, B·T]; positions restart at 0 in each document and in the padding of
        each row. `cu_seq_lens_q` and `cu_seq_lens_k`, int32 of shape [N + 1] (`cu_seqlens` of other libraries): the start of each of N
        sequences, and the end. `max_length_q` and `max_length_k`: the length of the longest sequence.

    Raises:
        ConfigError: The batch has no segment ids.
    """
    names = [column, f"{column}_segment_ids"]
    lacking = next((name for name in names if name not in batch), None)
    if lacking is not None:
        message = f"varlen: the batch has no column {lacking!r}; there are {', '.join(sorted(map(str, batch)))}"
        raise _errors.make("config", message, "pack rows before batch(…), for example by window_pack(…)")
    tokens, segments = (to_tensors(batch[name]) for name in names)
    begins = _torch.ones(segments.shape, dtype=_torch.bool, device=segments.device)
    begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
    begins, segments, tokens = begins.flatten(), segments.flatten(), tokens.flatten().to(_torch.int64)
    starts = begins.nonzero().flatten()
    ends = _torch.cat([starts[1:], starts.new_tensor([len(tokens)])])
    positions = _torch.arange(len(tokens), device=tokens.device) - starts.repeat_interleave(ends - starts)
    labels = tokens.masked_fill(begins | (segments == 0), ignore_index)
    bounds = _torch.cat([starts, ends[-1:]]).to(_torch.int32)
    longest = int((ends - starts).max())
    return {
        "input_ids": tokens[None],
        "labels": labels[None],
        "position_ids": positions[None],
        "cu_seq_lens_q": bounds,
        "cu_seq_lens_k": bounds,
        "max_length_q": longest,
        "max_length_k": longest,
    }


def part(group: Any = None) -> Part:
    """Returns the part of every global batch that this process receives, by its rank in a group of data-parallel processes.

    The part contains the store of `torch.distributed`. A loader with this part uses the store to compare the data of all processes:
    see its `guard`.

    Args:
        group: A device mesh of one dimension, such as `mesh["dp"]`, whose peers in other dimensions have an equal part; a
            process group; or `None` for all processes.

    Raises:
        ConfigError: The mesh has several dimensions, or this process is not in the group.
    """
    if hasattr(group, "get_local_rank"):
        if group.ndim != 1:
            message = f"a mesh of {group.ndim} dimensions says of none who shares rows"
            raise _errors.make("config", message, 'name one of them: gm.torch.part(mesh["dp"])')
        return _guarded(Part(group.get_local_rank(), group.size()), lambda: group.get_group())
    rank, count = _torch.distributed.get_rank(group), _torch.distributed.get_world_size(group)
    if rank < 0:
        raise _errors.make("config", "this process is not in the group", "pass a group that contains this process")
    return _guarded(Part(rank, count), lambda: group)


class _Store:
    """The rendezvous store of the processes. It is independent of collectives on tensors."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def set(self, key: str, value: str) -> None:
        self._store.set(key, value)

    def get(self, prefix: str, names: Sequence[str]) -> dict[str, str]:
        keys = [prefix + name for name in names]
        if self._store.has_extended_api() and self._store.check(keys):
            return {name: value.decode() for name, value in zip(names, self._store.multi_get(keys), strict=True)}
        there = [name for name in names if self._store.check([prefix + name])]
        return {name: self._store.get(prefix + name).decode() for name in there}

    def delete(self, key: str) -> None:
        # A file store of processes on one machine keeps everything that is written.
        with contextlib.suppress(RuntimeError):
            self._store.delete_key(key)


def _guarded(part: Part, group: Callable[[], Any]) -> Part:
    """Returns the part, with the store of its process group if there is a group."""
    distributed = _torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return part

    def exchange() -> _hosts.StoreExchange:
        ranks: list[int] = distributed.get_process_group_ranks(group())
        store = distributed.distributed_c10d._get_default_store()
        name = "-".join(map(str, ranks)) if len(ranks) < distributed.get_world_size() else "all"
        return _hosts.StoreExchange(_Store(store), f"torch-{name}", ranks.index(distributed.get_rank()), len(ranks))

    return _hosts.guarded(part, exchange)


class IterableDataset(_torch_data.IterableDataset[Any]):  # pyright: ignore[reportUntypedBaseClass, reportUnknownMemberType]
    """The elements of a gristmill dataset as tensors, for `torch.utils.data.DataLoader` or a plain loop.

    `ds` makes its batches itself, so the usual call is `DataLoader(IterableDataset(ds, threads=4), batch_size=None)`.
    Other `options` are those of `ds.loader`. If `ds` makes global batches, `part=gm.torch.part()` selects the rows of this process. States are
    then equal on all processes, and `guard` with `guard_timeout` stops processes that read different data. Tensors share the memory of the batch
    if no other object views it; `to_tensors` describes other cases, and `pin_memory`.

    `num_workers` of the `DataLoader` does not change the stream: worker i of n delivers elements i, i + n, …, and the `DataLoader`
    restores their order. Each of these workers evaluates the whole pipeline, and logs a warning. `threads` evaluate it once.

    `state_dict` and `load_state_dict` are the protocol of torchdata's `StatefulDataLoader`, which also calls them in its workers.
    In a plain `DataLoader` with `num_workers=0`, `state_dict` is the state after the last delivered batch.
    """

    def __init__(
        self,
        ds: _IterDataset | MapDataset,
        *,
        pin_memory: bool = False,
        **options: "Unpack[LoaderOptions]",
    ) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        _check_loader_options(**options)
        self._ds = ds
        self._pin_memory = pin_memory
        self._options: LoaderOptions = options
        self._running: TensorIterator | None = None
        self._next_state: dict[str, Any] | None = None

    def __iter__(self) -> "TensorIterator":
        # A worker's memory is separate from the trainer's, and a worker does not use the device.
        is_worker = _data.get_worker_info() is not None
        pin = self._pin_memory and not is_worker
        options: LoaderOptions = {"writable": not pin}
        options.update(self._options)
        if is_worker:
            # Several workers of one process do not count as hosts.
            options["guard"] = None
            shared = [name for name in ("metrics", "record", "trace", "ledger") if options.get(name) is not None]
            if shared:
                message = f"{shared[0]} is of one process, and each worker of this DataLoader would have it"
                raise _errors.make("config", message, "use num_workers=0 and IterableDataset(…, threads=n)")
        source = self._ds.loader(**options)
        self._running = TensorIterator(source, pin, *_place())
        state, self._next_state = self._next_state, None
        if state is not None:
            self._running.load_state_dict(state)
        return self._running

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the newest pass: positions, which JSON can represent."""
        if self._next_state is not None:
            return dict(self._next_state)
        if self._running is None:
            return TensorIterator(self._ds.loader(), False, *_place()).state_dict()
        return self._running.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Makes the next pass start at the position of `state_dict`."""
        self._next_state = dict(state_dict)


def _place() -> tuple[int, int]:
    """Returns `index` and `count` of this process among the workers of PyTorch."""
    worker = _data.get_worker_info()
    if worker is None:
        return 0, 1
    if worker.id == 0 and worker.num_workers > 1:
        told = f"each of the {worker.num_workers} workers of this DataLoader evaluates the whole pipeline"
        warnings.warn(f"{told}: num_workers=0 and IterableDataset(…, threads=n) evaluate it once", stacklevel=3)
    return worker.id, worker.num_workers


class TensorIterator(Closing):
    """A pass whose arrays are tensors: `iter` of an `IterableDataset` returns it.

    Page-locked memory belongs to one process. With `pin_memory`, every method raises `gristmill.WorkerError` in a fork of that
    process, except `close`, which does nothing.
    """

    def __init__(self, source: DatasetIterator, pin_memory: bool, index: int, count: int) -> None:
        self._source = source
        self._pin_memory = pin_memory
        self._origin = Origin()
        self._index, self._count = index, count
        # Elements that other workers deliver before the next element.
        self._skip = index

    def _check_process(self) -> None:
        if self._pin_memory:
            self._origin.check("this iterator", "make a new one in this process, without `pin_memory`")

    def __next__(self) -> Any:
        self._check_process()
        while self._skip > 0:
            next(self._source)
            self._skip -= 1
        batch = next(self._source)
        try:
            tensors = self._to_tensors(batch)
        except Exception:
            self._skip = self._count - 1
            raise
        except BaseException:
            # After an interrupt, the batch is delivered again.
            self._source.back()
            raise
        self._skip = self._count - 1
        return tensors

    def _to_tensors(self, batch: Any) -> Any:
        if not self._pin_memory:
            return to_tensors(batch)
        with transferring(self._source):
            return to_tensors(batch, pin_memory=True)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the consumer. Elements that were read ahead do not count."""
        self._check_process()
        place = {"format": _FORMAT, "worker": self._index, "workers": self._count, "skip": self._skip}
        # The state is text, because some loaders treat a tree in a state as their own.
        return {**place, "state": json.dumps(self._source.get_state())}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Moves to the position of `state_dict`. The index and the number of the worker must be those of the state."""
        self._check_process()
        if state_dict.get("format") != _FORMAT or not isinstance(state_dict.get("state"), str):
            raise _errors.make("state", f"not a state of gristmill.torch: it has {sorted(state_dict)}", None)
        was, now = (state_dict["worker"], state_dict["workers"]), (self._index, self._count)
        if was != now:
            message = f"the state is that of worker {was[0]} of {was[1]}, and this is worker {now[0]} of {now[1]}"
            raise _errors.make("state", message, "use as many workers as before")
        self._source.set_state(state_dict["state"])
        self._skip = int(state_dict["skip"])

    def repart(self, part: Part | tuple[int, int] | str) -> None:
        """Switches to the rows of another part from the next batch on, after processes have joined or left.

        Args:
            part: The part, as for `IterableDataset`.
        """
        self._check_process()
        self._source.repart(part)

    def back(self, count: int = 1) -> None:
        """Returns the last batches to the pass, which delivers them again, after a step that was not committed.

        Args:
            count: Number of batches, at most 2.
        """
        self._check_process()
        if self._count > 1:
            raise _errors.make("config", "a worker of a DataLoader has only some of the batches", "use num_workers=0")
        self._source.back(count)

    def report(self) -> Report:
        """Returns the report of the pass so far."""
        self._check_process()
        return self._source.report()

    def close(self) -> None:
        """Ends the threads and releases everything that was read ahead."""
        if self._origin.is_here() or not self._pin_memory:
            self._source.close()


# Stands for the end of a pass.
_END = object()


class StatefulLoader:
    """Epochs of a gristmill dataset, with the interface of torchdata's `StatefulDataLoader`.

    Batch n of a training run is element n of one stream. The length of the trainer's epochs does not matter. If a loop ends early, the
    next loop starts after its last batch. A loader with a restored state continues in the epoch of the state. The state is the position after
    the last delivered batch, and is equal on all processes.

    An epoch of a `MapDataset` has `len(ds)` elements of `ds.repeat()`, so each epoch is shuffled anew. An epoch of an `IterDataset` has
    `length` elements, and the stream may be endless. Without `length`, an epoch is one pass, and all epochs are equal.

    Args:
        ds: The dataset, which makes its batches itself.
        length: Batches of an epoch, the result of `len`. A trainer without `len` reads a batch ahead to find the end of the epoch; its
            states are then after that batch.
        pin_memory: Whether tensors are in page-locked memory.
        options: Options of `ds.loader`, as for `IterableDataset`.

    Raises:
        ConfigError: `length` is below 1.
    """

    def __init__(
        self,
        ds: _IterDataset | MapDataset,
        *,
        length: int | None = None,
        pin_memory: bool = False,
        **options: "Unpack[LoaderOptions]",
    ) -> None:
        if isinstance(ds, MapDataset):
            length, ds = len(ds) if length is None else length, ds.repeat()
        if length is not None and length < 1:
            raise _errors.make("config", f"an epoch of {length} batches", "the smallest length is 1")
        self._length = length
        self._data = IterableDataset(ds, pin_memory=pin_memory, **options)
        self._pass: TensorIterator | None = None
        # Position of the next pass, as JSON; empty for the start.
        self._start = ""
        # Number of delivered batches of this epoch, and whether the next loop continues it.
        self._step, self._goes_on = 0, False
        self._loops = 0

    def __len__(self) -> int:
        """Returns the number of batches of an epoch.

        Raises:
            TypeError: The dataset is a stream, and `length` was not given.
        """
        if self._length is None:
            raise TypeError("how many batches an epoch of a stream has is not known: StatefulLoader(ds, length=…)")
        return self._length

    def __iter__(self) -> Iterator[Any]:
        """Starts the next epoch, or continues the epoch of a restored state."""
        self._loops += 1
        return self._epoch(self._loops)

    def _epoch(self, loop: int) -> Iterator[Any]:
        self._check_newest(loop)
        if not self._goes_on or self._is_over():
            self._step = 0
        self._goes_on = False
        batch = self._draw()
        if batch is _END and self._start == "":
            # The last epoch has used up the pass.
            batch = self._draw()
        while batch is not _END:
            self._step += 1
            yield batch
            self._check_newest(loop)
            batch = _END if self._is_over() else self._draw()

    def _check_newest(self, loop: int) -> None:
        if loop != self._loops:
            message = "a newer loop goes over this loader, or a state was loaded"
            raise _errors.make("config", message, "use a separate loader for each concurrent loop")

    def _is_over(self) -> bool:
        return self._length is not None and self._step >= self._length

    def _draw(self) -> Any:
        """Returns the next batch of the pass, or `_END` after its end. Starts the pass if there is none."""
        if self._pass is None:
            if self._start:
                self._data.load_state_dict(json.loads(self._start))
            self._pass = iter(self._data)
        try:
            return next(self._pass)
        except StopIteration:
            self._forget("", 0)
            return _END

    def _forget(self, start: str, step: int) -> None:
        """Ends the pass. The next pass has another start."""
        if self._pass is not None:
            self._pass.close()
        self._pass, self._start, self._step = None, start, step

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the newest loop: a few hundred bytes of numbers and text, which JSON, `torch.save` and
        `torch.distributed.checkpoint` can store.
        """
        start = self._start if self._pass is None else json.dumps(self._pass.state_dict())
        return {"format": _FORMAT, "step": self._step, "pass": start}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Moves to the position of `state_dict`. The next loop continues that epoch, or starts the next epoch if it was complete.

        Raises:
            StateError: It is not a state of a `StatefulLoader`. A state of another pipeline raises an error in the next loop.
        """
        if state_dict.get("format") != _FORMAT or not isinstance(state_dict.get("pass"), str):
            message = f"not a state of gristmill.torch.StatefulLoader: it has {sorted(state_dict)}"
            raise _errors.make("state", message, "pass the result of `state_dict` of a StatefulLoader")
        self._loops += 1
        self._forget(state_dict["pass"], int(state_dict["step"]))
        self._goes_on = True

    def report(self) -> Report:
        """Returns the report of the current pass, over its epochs.

        Raises:
            ConfigError: The pass has not begun, or has ended.
        """
        if self._pass is None:
            raise _errors.make("config", "no pass is running", "call report() inside the loop")
        return self._pass.report()

    def close(self) -> None:
        """Ends the threads. The next loop continues after the last batch of this loop."""
        if self._pass is not None:
            state = self.state_dict()
            self._loops += 1
            self._forget(state["pass"], state["step"])
