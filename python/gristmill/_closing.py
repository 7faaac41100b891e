"""Passes that close at the end of their `with` block."""

from abc import abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self


class Closing(Iterator[Any]):
    """An iterator whose `with` block closes it."""

    @abstractmethod
    def close(self) -> None: ...

    def __iter__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()
