"""Passes over streams: the class that users subclass, too."""

import abc
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeVar, cast

from gristmill import orbax

T = TypeVar("T")


def only_parent(child: Any, parents: Sequence[Any]) -> Any:
    """The parent of what has one. Of anything else `hasattr(child, "_parent")` is false: programs look for it so."""
    if len(parents) != 1:
        raise AttributeError(f"{type(child).__name__} has {len(parents)} parents, not one", name="_parent", obj=child)
    return parents[0]


class DatasetIterator(Iterator[T], abc.ABC):
    """A pass over an `IterDataset`. Classes of the user's own add `__next__`, `get_state` and `set_state`."""

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
        """Where it is: a dict that JSON can hold."""

    @abc.abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken."""

    def start_prefetch(self) -> None:
        """Begins to read ahead, before the first element is asked for."""
        for parent in self._parents:
            parent.start_prefetch()

    def close(self) -> None:
        """Ends what reads ahead. Closing twice is closing once; asking for an element after it is a `ValueError`."""
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
        """Takes the state now, and writes it into a folder of a checkpoint of Orbax when what this returns is awaited."""
        return await orbax.save(self, directory)

    async def load(self, directory: Any) -> Awaitable[None]:
        """Goes to the state that `save` wrote, when what this returns is awaited."""
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
    """Where the time of a pass went: its `report()`. As in Grain it has to be asked for beforehand, though it is always measured."""
    return ds_iter._execution_summary()


def set_next_index(ds_iter: DatasetIterator[Any], index: int) -> None:
    """Goes to element `index`, where each stage can say what that is."""
    ds_iter._set_next_index(index)


def get_next_index(ds_iter: DatasetIterator[Any]) -> int:
    """The index of the element that is given next."""
    return ds_iter._get_next_index()
