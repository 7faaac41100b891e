"""Records inside a `DataLoader`."""

import dataclasses
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


@dataclasses.dataclass(slots=True)
class RecordMetadata:
    """The origin of a record, as a sampler returns it."""

    index: int
    record_key: int | None = None
    rng: np.random.Generator | None = None

    def remove_record_key(self) -> "RecordMetadata":
        """Returns a copy without the key: a batch has no key."""
        return self if self.record_key is None else dataclasses.replace(self, record_key=None)

    def __str__(self) -> str:
        return f"RecordMetadata(index={self.index}, record_key={self.record_key}, rng={self.rng})"


@dataclasses.dataclass(slots=True)
class Record(Generic[T]):
    """A record and its origin."""

    metadata: RecordMetadata
    data: T
