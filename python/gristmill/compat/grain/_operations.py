"""Operations of a `DataLoader`. Transforms replaced them. An operation is a function of an iterator of records."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from gristmill._tree import registered
from gristmill.compat.grain import _tree_lib
from gristmill.compat.grain._batch import make_batch
from gristmill.compat.grain._record import Record


class Operation(Protocol):
    """A function from an iterator of records to an iterator of records."""

    def __call__(self, input_iterator: Iterator[Record[Any]]) -> Iterator[Record[Any]]:
        """Returns the new records."""
        ...


def _called(what: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        raise ValueError(f"PyGrain encountered an error when calling {what} function.") from error


@dataclasses.dataclass
class MapOperation:
    """A function applied to the data of every record."""

    map_function: Callable[[Any], Any]

    def __call__(self, input_iterator: Iterator[Record[Any]]) -> Iterator[Record[Any]]:
        for record in input_iterator:
            yield Record(record.metadata.remove_record_key(), _called("map", self.map_function, record.data))


@dataclasses.dataclass
class RandomMapOperation:
    """A function applied to the data of every record and random numbers."""

    random_map_function: Callable[[Any, np.random.Generator], Any]

    def __call__(self, input_iterator: Iterator[Record[Any]]) -> Iterator[Record[Any]]:
        for record in input_iterator:
            data = _called("random map", self.random_map_function, record.data, record.metadata.rng)
            yield Record(record.metadata.remove_record_key(), data)


@dataclasses.dataclass
class FilterOperation:
    """A filter of records by a function of their data."""

    condition_function: Callable[[Any], bool]

    def __call__(self, input_iterator: Iterator[Record[Any]]) -> Iterator[Record[Any]]:
        for record in input_iterator:
            if _called("condition", self.condition_function, record.data):
                yield Record(record.metadata.remove_record_key(), record.data)


@dataclasses.dataclass
class BatchOperation:
    """Stacks the data of records into batches. A batch has the metadata of its last record."""

    batch_size: int
    drop_remainder: bool = False
    batch_fn: Callable[[Sequence[Any]], Any] | None = None

    def __post_init__(self) -> None:
        if self.batch_size <= 0:
            raise ValueError(f"batch_size must be a positive integer. Got {self.batch_size}.")

    def disable_deprecation_message(self) -> None:
        """Does nothing: this class logs no deprecation message."""

    def __call__(self, input_iterator: Iterator[Record[Any]]) -> Iterator[Record[Any]]:
        waiting: list[Record[Any]] = []
        for record in input_iterator:
            waiting.append(record)
            if len(waiting) == self.batch_size:
                yield self.join(waiting)
                waiting = []
        if waiting and not self.drop_remainder:
            yield self.join(waiting)

    def join(self, records: Sequence[Record[Any]]) -> Record[Any]:
        """Returns a record that combines all records."""
        data = [record.data for record in records]
        batch = self.batch_fn(data) if self.batch_fn else self._stack(data)
        return Record(records[-1].metadata.remove_record_key(), batch)

    def _stack(self, data: Sequence[Any]) -> Any:
        if dataclasses.is_dataclass(data[0]) and registered(data[0]) is None:
            # DIFFERENCE from `make_batch`: operations treat a dataclass as a leaf.
            return np.array(data)
        others = [at for at, other in enumerate(data) if not _alike(data[0], other)]
        if others:
            raise TypeError(
                f"Record structures do not match. Record at position 0 has structure {data[0]}, while records at "
                f"positions {others} have structures {[data[at] for at in others]}."
            )
        return make_batch(data)


def _alike(a: Any, b: Any) -> bool:
    try:
        _tree_lib.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return True
