"""Batches as PyTorch's tensors, in its `DataLoader` and without it.

Imported when it is first used, as `gristmill.torch`; it needs PyTorch.
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

# PyTorch's functions are typed in part, which strict checkers take for an error wherever they are called.
_torch, _data = cast("Any", torch), cast("Any", _torch_data)

_check_loader_options: Callable[..., None] = getattr(_gristmill, "_check_loader_options")
_FORMAT = 1


def to_tensors(tree: Any, *, pin_memory: bool = False) -> Any:
    """`tree` with tensors for its arrays; what is no array of numbers, such as text, stays as it is.

    A tensor shares the memory of an array that may be written to. PyTorch knows no read-only tensors, so read-only
    arrays are copied: ask for batches that are not, by `loader(writable=True)`. With `pin_memory`, where there is CUDA,
    every array is copied once, into page-locked memory, from which `tensor.to(device, non_blocking=True)` does not wait.
    """
    pinned = pin_memory and bool(_torch.cuda.is_available())
    convert = _pinned if pinned else _tensor
    return walk(tree, lambda _, leaf: _converted(leaf, convert), of_jax=False)


def _converted(leaf: Any, convert: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    if isinstance(leaf, list):
        # Numbers of NumPy are numbers of Python, too, as far as a list of them is a leaf.
        return [_converted(part, convert) for part in cast("Any", leaf)]
    if not isinstance(leaf, (np.ndarray, np.generic)):
        return leaf
    array = np.asarray(cast("Any", leaf))
    return convert(array) if array.dtype.kind in "biufc" or array.dtype.name == "bfloat16" else cast("Any", leaf)


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    # It also wants native byte order, and no negative strides.
    plain = array.flags.writeable and array.dtype.isnative and min(array.strides, default=0) >= 0
    return _shared(array if plain else np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def _shared(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.name == "bfloat16":
        # NumPy and PyTorch have no name for it that both know.
        return _torch.from_numpy(array.view(np.int16)).view(_torch.bfloat16)
    return _torch.from_numpy(array)


def _pinned(array: np.ndarray[Any, Any]) -> Any:
    like = _shared(np.empty(0, array.dtype.newbyteorder("=")))
    tensor = _torch.empty(array.shape, dtype=like.dtype, pin_memory=True)
    target = tensor.view(_torch.int16).numpy().view(array.dtype) if like.dtype == _torch.bfloat16 else tensor.numpy()
    np.copyto(target, array)
    return tensor


def varlen(batch: Mapping[str, Any], column: str = "tokens", *, ignore_index: int = -100) -> dict[str, Any]:
    """Packed rows as the arguments that models of `transformers` take for FlashAttention: attention does not cross documents.

    The rows are laid end to end, as one row of B·T tokens. The padding of a row is a sequence of its own.

    Args:
        batch: A batch of packed rows of shape [B, T]: `column`, and its `…_segment_ids`, which are 0 for padding.
        column: The column of token ids.
        ignore_index: The label of padding and of the first token of each document, which no token of the document comes before.

    Returns:
        `input_ids`, `labels` and `position_ids`, int64 of shape [1, B·T]; positions begin at 0 in each document and in the padding of
        each row. `cu_seq_lens_q` and `cu_seq_lens_k`, int32 of shape [N + 1] (`cu_seqlens` of other libraries): where each of N
        sequences begins, and the end. `max_length_q` and `max_length_k`: the length of the longest.

    Raises:
        ConfigError: The batch has no segment ids.
    """
    names = [column, f"{column}_segment_ids"]
    lacking = next((name for name in names if name not in batch), None)
    if lacking is not None:
        message = f"varlen: the batch has no column {lacking!r}; there are {', '.join(sorted(map(str, batch)))}"
        raise _errors.make("config", message, "pack rows, by window_pack(…) or another of its kind, in front of batch(…)")
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
    """The part of every global batch that this process takes, by its place in a group of data-parallel processes.

    It brings along the way to the other processes of the group, the store of `torch.distributed`: a loader with it compares what
    they read, see its `guard`.

    Args:
        group: A device mesh of one dimension, such as `mesh["dp"]`, whose peers in other dimensions have the same part; a
            process group; or nothing for all processes.

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
        raise _errors.make("config", "this process is not in the group", "give it a group that it is in")
    return _guarded(Part(rank, count), lambda: group)


class _Store:
    """The store by which the processes have met. Collectives on tensors have nothing to do with it."""

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
        # Files, by which processes of one machine may meet, keep what is written.
        with contextlib.suppress(RuntimeError):
            self._store.delete_key(key)


def _guarded(part: Part, group: Callable[[], Any]) -> Part:
    """The part, with the way to the other processes of a group, where there is one."""
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

    `ds` makes its batches itself, so the usual way is `DataLoader(IterableDataset(ds, threads=4), batch_size=None)`.
    Other `options` are those of `ds.loader`. If `ds` makes global batches, `part=gm.torch.part()` selects the rows of this process. States are
    then equal on all processes, and `guard` with `guard_timeout` stops processes that read other data. Tensors share the memory of the batch
    if nobody else views it; `to_tensors` describes other cases, and `pin_memory`.

    With `num_workers` of PyTorch's own, the stream stays the same: of n workers the i-th delivers elements i, i + n, …,
    which the `DataLoader` puts back in order. Each of them evaluates the whole pipeline for that, and says so; `threads`
    evaluate it once.

    `state_dict` and `load_state_dict` are the protocol of torchdata's `StatefulDataLoader`, which also asks the workers.
    In a plain `DataLoader` with `num_workers=0`, `state_dict` is behind the batch that the loop has.
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
        # A worker's memory is not the trainer's, and a worker leaves the device alone.
        is_worker = _data.get_worker_info() is not None
        pin = self._pin_memory and not is_worker
        options: LoaderOptions = {"writable": not pin}
        options.update(self._options)
        if is_worker:
            # Several workers of one process are no hosts.
            options["guard"] = None
            shared = [name for name in ("metrics", "record", "trace") if options.get(name) is not None]
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
        """Where the newest pass over it is: positions, which JSON can hold."""
        if self._next_state is not None:
            return dict(self._next_state)
        if self._running is None:
            return TensorIterator(self._ds.loader(), False, *_place()).state_dict()
        return self._running.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next pass over it starts where `state_dict` was taken."""
        self._next_state = dict(state_dict)


def _place() -> tuple[int, int]:
    """This process among PyTorch's workers: `index` of `count`."""
    worker = _data.get_worker_info()
    if worker is None:
        return 0, 1
    if worker.id == 0 and worker.num_workers > 1:
        told = f"each of the {worker.num_workers} workers of this DataLoader evaluates the whole pipeline"
        warnings.warn(f"{told}: num_workers=0 and IterableDataset(…, threads=n) evaluate it once", stacklevel=3)
    return worker.id, worker.num_workers


class TensorIterator(Closing):
    """A pass whose arrays are tensors: what `iter` of an `IterableDataset` gives.

    Page-locked memory is of one process: with `pin_memory`, whatever is asked of it in a fork of the process that made it
    raises `gristmill.WorkerError`, and `close` does nothing.
    """

    def __init__(self, source: DatasetIterator, pin_memory: bool, index: int, count: int) -> None:
        self._source = source
        self._pin_memory = pin_memory
        self._origin = Origin()
        self._index, self._count = index, count
        # Elements that other workers deliver in front of the next one.
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
            # An interrupt: the batch is the next one again.
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
        """Where the consumer is, whatever was read ahead."""
        self._check_process()
        place = {"format": _FORMAT, "worker": self._index, "workers": self._count, "skip": self._skip}
        # As text: loaders that walk over states take a tree for one of their own.
        return {**place, "state": json.dumps(self._source.get_state())}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes to where `state_dict` was taken, by the same worker of as many."""
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
        """Delivers the rows of another part from the next batch on: where processes have come or gone.

        Args:
            part: The part, as for `IterableDataset`.
        """
        self._check_process()
        self._source.repart(part)

    def back(self, count: int = 1) -> None:
        """Gives the last batches back: they are delivered again, after a step that was not committed.

        Args:
            count: How many; 2 at most.
        """
        self._check_process()
        if self._count > 1:
            raise _errors.make("config", "a worker of a DataLoader has only some of the batches", "use num_workers=0")
        self._source.back(count)

    def report(self) -> Report:
        """Where the time went so far."""
        self._check_process()
        return self._source.report()

    def close(self) -> None:
        """Ends the threads and lets go of everything that was read ahead."""
        if self._origin.is_here() or not self._pin_memory:
            self._source.close()


# No batch: the pass is over.
_END = object()


class StatefulLoader:
    """Epochs of a gristmill dataset, with the interface of torchdata's `StatefulDataLoader`, for trainers that expect one.

    Batch n of a training is element n of one stream, in whatever way the trainer cuts it into epochs. A loop that is left early is
    followed by one that starts behind its last batch, and a loader that is given a state goes on in the epoch that it was taken in. States are those
    of all processes, and behind the batch that the loop has, whatever was read ahead.

    Of a `MapDataset` an epoch is `len(ds)` elements of `ds.repeat()`, so each is shuffled anew. Of an `IterDataset` it is `length` elements, and
    the stream may be without end; where no length is given it is a pass, and all are alike.

    Args:
        ds: The dataset, which makes its batches itself.
        length: Batches of an epoch, which `len` says to the trainer. One that is not told reads a batch ahead to find the end, and
            states are then behind that batch.
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
            raise _errors.make("config", f"an epoch of {length} batches", "give it 1 at least")
        self._length = length
        self._data = IterableDataset(ds, pin_memory=pin_memory, **options)
        self._pass: TensorIterator | None = None
        # Where the next pass starts, as JSON: at the start if it is empty.
        self._start = ""
        # Batches of this epoch that were delivered, and whether the next loop goes on in it.
        self._step, self._goes_on = 0, False
        self._loops = 0

    def __len__(self) -> int:
        """Batches of an epoch.

        Raises:
            TypeError: The dataset is a stream, and no length was given.
        """
        if self._length is None:
            raise TypeError("how many batches an epoch of a stream has is not known: StatefulLoader(ds, length=…)")
        return self._length

    def __iter__(self) -> Iterator[Any]:
        """Starts the next epoch, or goes on in the one in which a state was taken."""
        self._loops += 1
        return self._epoch(self._loops)

    def _epoch(self, loop: int) -> Iterator[Any]:
        self._check_newest(loop)
        if not self._goes_on or self._is_over():
            self._step = 0
        self._goes_on = False
        batch = self._draw()
        if batch is _END and self._start == "":
            # The last epoch took all that the pass had.
            batch = self._draw()
        while batch is not _END:
            self._step += 1
            yield batch
            self._check_newest(loop)
            batch = _END if self._is_over() else self._draw()

    def _check_newest(self, loop: int) -> None:
        if loop != self._loops:
            message = "a newer loop goes over this loader, or a state was loaded"
            raise _errors.make("config", message, "use one loader for each loop that runs at a time")

    def _is_over(self) -> bool:
        return self._length is not None and self._step >= self._length

    def _draw(self) -> Any:
        """The next batch of the pass, which is started where there is none, or `_END` and an end to it."""
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
        """Ends the pass: the next one starts elsewhere."""
        if self._pass is not None:
            self._pass.close()
        self._pass, self._start, self._step = None, start, step

    def state_dict(self) -> dict[str, Any]:
        """Where the newest loop is: a few hundred bytes of numbers and text, which JSON, `torch.save` and
        `torch.distributed.checkpoint` can hold.
        """
        start = self._start if self._pass is None else json.dumps(self._pass.state_dict())
        return {"format": _FORMAT, "step": self._step, "pass": start}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes to where `state_dict` was taken: the next loop goes on in that epoch, or with the next one if it was over.

        Raises:
            StateError: It is no state of a `StatefulLoader`. One of another pipeline is an error in the next loop.
        """
        if state_dict.get("format") != _FORMAT or not isinstance(state_dict.get("pass"), str):
            message = f"not a state of gristmill.torch.StatefulLoader: it has {sorted(state_dict)}"
            raise _errors.make("state", message, "give it what `state_dict` of a StatefulLoader returned")
        self._loops += 1
        self._forget(state_dict["pass"], int(state_dict["step"]))
        self._goes_on = True

    def report(self) -> Report:
        """Where the time went in the pass that runs, over its epochs.

        Raises:
            ConfigError: No batch was asked for yet, or the pass is over.
        """
        if self._pass is None:
            raise _errors.make("config", "no pass runs", "ask for the report in the loop")
        return self._pass.report()

    def close(self) -> None:
        """Ends the threads; the next loop goes on where this one is."""
        if self._pass is not None:
            state = self.state_dict()
            self._loops += 1
            self._forget(state["pass"], state["step"])
