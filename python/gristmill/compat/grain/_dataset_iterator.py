"""The base class of passes over streams, which users may subclass."""

import abc
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast

from gristmill import orbax

T = TypeVar("T")


def only_parent(child: Any, parents: Sequence[Any]) -> Any:
    """Returns the only parent. Raises `AttributeError` otherwise, so that `hasattr(child, "_parent")` is false."""
    if len(parents) != 1:
        raise AttributeError(f"{type(child).__name__} has {len(parents)} parents, not one", name="_parent", obj=child)
    return parents[0]


class DatasetIterator(Iterator[T], abc.ABC):
    """A pass over an `IterDataset`. Custom classes define `__next__`, `get_state` and `set_state`."""

    _MUTATES_ELEMENT_SPEC: ClassVar[bool] = True

    def __init__(self, parents: Any = ()) -> None:
        self._parents: tuple[DatasetIterator[Any], ...] = (
            (parents,) if isinstance(parents, DatasetIterator) else tuple(parents)
        )
        self._closed = False

    @property
    def _parent(self) -> "DatasetIterator[Any]":
        return cast("DatasetIterator[Any]", only_parent(self, self._parents))

    def __iter__(self) -> Self:
        return self

    @abc.abstractmethod
    def __next__(self) -> T: ...

    @abc.abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Returns the position as a dict for JSON."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Moves to a position returned by `get_state`."""

    def start_prefetch(self) -> None:
        """Starts to prefetch before the first element is requested."""
        for parent in self._parents:
            parent.start_prefetch()

    def close(self) -> None:
        """Stops prefetching. Further calls of `close` do nothing; `next` raises `ValueError`."""
        self._closed = True
        for parent in self._parents:
            parent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _assert_not_closed(self) -> None:
        if self._closed:
            raise ValueError("Attempting to use iterator after it was closed.")

    async def save(self, directory: Any) -> Awaitable[None]:
        """Takes the state now, and writes it to a folder of an Orbax checkpoint once the awaitable is awaited."""
        return await orbax.save(self, directory)

    async def load(self, directory: Any) -> Awaitable[None]:
        """Restores the state that `save` wrote, once the returned awaitable is awaited."""
        return await orbax.load(self, directory)

    def _execution_summary(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no times of its own: ask the pass that reads it for its `report()`")

    def _set_next_index(self, index: int) -> None:
        raise NotImplementedError(f"set_next_index is not supported for {type(self).__name__}: {self}")

    def _get_next_index(self) -> int:
        raise NotImplementedError(f"get_next_index is not supported for {type(self).__name__}: {self}")

    def __str__(self) -> str:
        return type(self).__name__


def get_execution_summary(ds_iter: DatasetIterator[Any]) -> Any:
    """Returns the `report()` of a pass. As in Grain, an option must enable it, although times are always measured."""
    return ds_iter._execution_summary()


def set_next_index(ds_iter: DatasetIterator[Any], index: int) -> None:
    """Moves to element `index`. Raises `NotImplementedError` if a stage cannot find the position of an index."""
    ds_iter._set_next_index(index)


def get_next_index(ds_iter: DatasetIterator[Any]) -> int:
    """Returns the index of the next element."""
    return ds_iter._get_next_index()
