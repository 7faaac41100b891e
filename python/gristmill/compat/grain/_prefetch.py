"""Conversion to streams, and evaluation by threads and workers. Neither changes the data."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import gristmill as gm
from gristmill.compat.grain._dataset import IterDataset, MapDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator
from gristmill.compat.grain._iterator import CoreIterator
from gristmill.compat.grain._options import MultiprocessingOptions, ReadOptions
from gristmill.compat.grain._plan import Plan
from gristmill.compat.grain._stages import CoreIterDataset, InStep, SameElements

# Upper limit: more threads do not speed up any source.
_MOST_THREADS = 64


@runtime_checkable
class SupportsSlicedStateManagement(Protocol):
    """A pass over several datasets with a state per dataset, which a pass over other datasets can restore."""

    def get_shard_states(self) -> Sequence[Any]:
        """Returns for each dataset whether it has ended, and its position."""
        ...

    def set_shard_states(self, shard_states: Sequence[Any]) -> None:
        """Moves to the positions of the datasets."""
        ...


class PrefetchDatasetIterator(CoreIterator):
    """A pass over an epoch of a `MapDataset`."""


class PrefetchIterDataset(SameElements, CoreIterDataset[Any]):
    """An epoch of a `MapDataset` as a stream."""

    _PASS = ("_prefetch", "PrefetchDatasetIterator")

    def __init__(
        self, parent: MapDataset[Any], *, read_options: ReadOptions | None = None, allow_nones: bool = False
    ) -> None:
        super().__init__(parent)
        self._read_options = read_options or parent._default_read_options()
        # By default, a dataset that computes its elements from numbers is read without threads.
        self._chosen_options = read_options or parent._read_options()
        self._allow_nones = allow_nones

    def length_of_source(self) -> int:
        """Returns the number of elements and empty slots in the source."""
        return len(cast("MapDataset[Any]", self._parent))

    def state_at(self, index: int) -> dict[str, Any]:
        return {"next_index": index}

    def index_of(self, state: dict[str, Any]) -> int:
        index: int = state["next_index"]
        return index

    def _build(self, plan: Plan) -> gm.IterDataset:
        plan.read(self._chosen_options)
        core = cast("MapDataset[Any]", self._parent)._core()
        return (core.slots() if self._allow_nones else core).to_iter(**plan.thresholds)

    def __str__(self) -> str:
        return f"PrefetchIterDataset(read_options={self._read_options}, allow_nones={self._allow_nones})"


class _Ahead(SameElements, InStep[Any]):
    """A stream that is evaluated ahead of its consumer."""

    _threads: int = 0

    def _build(self, plan: Plan) -> gm.IterDataset:
        core = super()._build(plan)
        plan.threads = max(plan.threads, min(self._threads, _MOST_THREADS))
        return core

    def _behind(self, core: gm.IterDataset) -> gm.IterDataset:
        return core


class MultiprocessPrefetchIterDataset(_Ahead):
    """A stream that worker processes evaluate.

    DIFFERENCE: elements and order do not depend on the number of workers. `sequential_slice` selects how Grain divides
    the data among workers, and has no effect here.
    """

    def __init__(
        self,
        parent: IterDataset[Any],
        multiprocessing_options: MultiprocessingOptions,
        worker_init_fn: Callable[[int, int], None] | None = None,
        sequential_slice: bool = False,
    ) -> None:
        super().__init__(parent)
        if multiprocessing_options.num_workers < 0:
            raise ValueError(f"`num_workers` must be greater than or equal to 0, got {multiprocessing_options}")
        self._multiprocessing_options = multiprocessing_options
        self._worker_init_fn = worker_init_fn
        self._sequential_slice = sequential_slice

    def _build(self, plan: Plan) -> gm.IterDataset:
        core = super()._build(plan)
        plan.has_workers = True
        options = self._multiprocessing_options
        return core.mp_prefetch(
            num_workers=options.num_workers,
            per_worker_buffer_size=max(options.per_worker_buffer_size, 1),
            worker_init_fn=self._worker_init_fn,
        )

    def __str__(self) -> str:
        return f"MultiprocessPrefetchIterDataset(multiprocessing_options={self._multiprocessing_options})"


class ProcessPrefetchIterDataset(MultiprocessPrefetchIterDataset):
    """A stream that a single worker process evaluates."""

    def __init__(
        self,
        parent: IterDataset[Any],
        buffer_size: int,
        worker_init_fn: Callable[[], None] | None = None,
    ) -> None:
        if buffer_size <= 0:
            raise ValueError(f"`buffer_size` must be greater than 0, got {buffer_size}.")
        init = None if worker_init_fn is None else functools.partial(_ignoring_its_place, worker_init_fn)
        super().__init__(parent, MultiprocessingOptions(1, buffer_size), init)


def _ignoring_its_place(function: Callable[[], None], _index: int, _count: int) -> None:
    function()


class ThreadPrefetchIterDataset(_Ahead):
    """A stream that another thread evaluates."""

    def __init__(self, parent: IterDataset[Any], *, prefetch_buffer_size: int) -> None:
        super().__init__(parent)
        if prefetch_buffer_size < 0:
            raise ValueError(f"`prefetch_buffer_size` must be greater than or equal to 0, got {prefetch_buffer_size}")
        self._prefetch_buffer_size = prefetch_buffer_size
        self._threads = min(prefetch_buffer_size, 1)

    def __str__(self) -> str:
        return f"ThreadPrefetchIterDataset(prefetch_buffer_size={self._prefetch_buffer_size})"


class MultithreadPrefetchIterDataset(_Ahead):
    """A stream that several threads evaluate."""

    def __init__(self, parent: IterDataset[Any], num_threads: int) -> None:
        super().__init__(parent)
        if num_threads < 0:
            raise ValueError(f"`num_threads` must be greater than or equal to 0, got {num_threads}")
        self._threads = num_threads

    def __str__(self) -> str:
        return f"MultithreadPrefetchIterDataset(num_threads={self._threads})"


class _Once:
    """A started pass as a stream."""

    def __init__(self, iterator: DatasetIterator[Any]) -> None:
        self._iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self._iterator


class ThreadPrefetchDatasetIterator(DatasetIterator[Any]):
    """A pass that another thread prefetches. Its state is the parent's state after the last delivered element."""

    def __init__(self, parent: DatasetIterator[Any], prefetch_buffer_size: int) -> None:
        # Accepts any iterator with a state.
        super().__init__((parent,))
        if prefetch_buffer_size <= 0:
            raise ValueError("`buffer_size` must be greater than 0")
        self._loader: gm.DatasetIterator | None = None
        self._buffer = prefetch_buffer_size

    def _running(self) -> gm.DatasetIterator:
        self._assert_not_closed()
        if self._loader is None:
            self._loader = gm.IterDataset.source(_Once(self._parent)).loader(threads=1, buffer=self._buffer)
        return self._loader

    def __next__(self) -> Any:
        return next(self._running())

    def start_prefetch(self) -> None:
        self._running()

    def get_state(self) -> dict[str, Any]:
        if self._loader is None:
            return self._parent.get_state()
        state: dict[str, Any] = self._loader.get_state()["state"]["python"]
        return state

    def set_state(self, state: dict[str, Any]) -> None:
        self._assert_not_closed()
        if self._loader is not None:
            self._loader.close()
            self._loader = None
        self._parent.set_state(state)

    def close(self) -> None:
        if self._loader is not None:
            self._loader.close()
            self._loader = None
        super().close()


def multiprocess_prefetch_options(
    ds: IterDataset[Any],
    options: MultiprocessingOptions,
    worker_init_fn: Callable[[int, int], None] | None = None,
    sequential_slice: bool = False,
) -> IterDataset[Any]:
    """Returns `ds` evaluated by worker processes, or `ds` itself for 0 workers."""
    if options.num_workers == 0:
        return ds
    return MultiprocessPrefetchIterDataset(ds, options, worker_init_fn, sequential_slice)


def multiprocess_prefetch(
    ds: IterDataset[Any],
    num_workers: int = 0,
    buffer_size: int = 1,
    worker_init_fn: Callable[[int, int], None] | None = None,
    sequential_slice: bool = False,
) -> IterDataset[Any]:
    """Calls `multiprocess_prefetch_options` with the options as separate arguments."""
    options = MultiprocessingOptions(num_workers=num_workers, per_worker_buffer_size=buffer_size)
    return multiprocess_prefetch_options(ds, options, worker_init_fn, sequential_slice)


def multithread_prefetch(
    ds: IterDataset[Any], num_threads: int, buffer_size: int, sequential_slice: bool = False
) -> IterDataset[Any]:
    """Returns `ds` evaluated by threads of this process."""
    del buffer_size, sequential_slice
    return MultithreadPrefetchIterDataset(ds, num_threads)
