"""Packing as an operation of a `DataLoader`, the predecessor of the packing datasets."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.compat.grain._record import Record, RecordMetadata

# Feature name under which the core carries the number of a record. No user feature has this name.
_NUMBER = "\x1f number"


class _Numbered:
    """A single-use stream of the features of records, with their numbers. Keeps the metadata of the records."""

    def __init__(self, records: Iterator[Record[Any]]) -> None:
        self._records = records
        self.metadata: dict[int, RecordMetadata] = {}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, record in enumerate(self._records):
            self.metadata[number] = record.metadata
            yield {**{name: np.atleast_1d(leaf) for name, leaf in record.data.items()}, _NUMBER: number}

    def take(self, last: int) -> RecordMetadata:
        """Returns the metadata of record `last` and drops the metadata up to it."""
        found = self.metadata[last]
        self.metadata = {number: kept for number, kept in self.metadata.items() if number > last}
        return found


@dataclasses.dataclass
class PackAndBatchOperation:
    """Records packed into batches: `(values, segment ids, positions)`, each shaped like `length_struct`.

    `length_struct` is a dict of lengths. A batch has the metadata of its last record, and always `batch_size` rows.
    """

    length_struct: dict[str, int]
    batch_size: int
    max_sequences_per_bin: int | None = None

    def __call__(self, input_iterator: Iterator[Record[Any]]) -> Iterator[Record[Any]]:
        numbered = _Numbered(iter(input_iterator))
        limit: dict[str, Any] = {"max_sequences_per_bin": self.max_sequences_per_bin}
        packed = gm.IterDataset.source(numbered).first_fit_pack(
            length=self.length_struct,
            num_packing_bins=self.batch_size,
            shuffle_bins=False,
            meta_features=[_NUMBER],
            **(limit if self.max_sequences_per_bin is not None else {}),
        )
        rows: list[dict[str, Any]] = []
        for row in packed:
            rows.append(row)
            if len(rows) == self.batch_size:
                yield self._batch(rows, numbered)
                rows = []
        if rows:
            yield self._batch(rows, numbered)

    def _batch(self, rows: list[dict[str, Any]], numbered: _Numbered) -> Record[Any]:
        def column(name: str) -> Any:
            stacked = np.stack([row[name] for row in rows])
            missing = np.zeros((self.batch_size - len(rows), *stacked.shape[1:]), stacked.dtype)
            return np.concatenate([stacked, missing])

        parts = tuple(
            {name: column(name + suffix) for name in self.length_struct} for suffix in ("", "_segment_ids", "_positions")
        )
        last = max(int(number) for row in rows for number in row[_NUMBER])
        return Record(numbered.take(last).remove_record_key(), parts)
