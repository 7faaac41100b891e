"""Rows of Parquet files in order, read by `pyarrow` to support its file systems and options.

The core reads Parquet files without `pyarrow`: see the sources of `gristmill.IterDataset`.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator

_CYCLE = 16


class _ParquetIterator(DatasetIterator[dict[str, Any]]):
    """A pass over a file, with a single row group in memory."""

    def __init__(self, path: Any, options: dict[str, Any]) -> None:
        super().__init__()
        parquet: Any = import_module("pyarrow.parquet")
        self._file: Any = parquet.ParquetFile(path, **options)
        self._row_group = 0
        self._index = 0
        self._columns: dict[str, Any] | None = None

    def _open(self) -> dict[str, Any] | None:
        """Returns the columns of the first row group, from the current one on, that has rows left."""
        while self._row_group < self._file.num_row_groups:
            if self._columns is None:
                table = self._file.read_row_group(self._row_group)
                self._columns = {
                    name: column.to_numpy() for name, column in zip(table.column_names, table.columns, strict=True)
                }
            if self._columns and self._index < len(next(iter(self._columns.values()))):
                return self._columns
            self._row_group, self._index, self._columns = self._row_group + 1, 0, None
        return None

    def __next__(self) -> dict[str, Any]:
        self._assert_not_closed()
        columns = self._open()
        if columns is None:
            raise StopIteration
        row = {name: column[self._index] for name, column in columns.items()}
        self._index += 1
        return row

    def get_state(self) -> dict[str, Any]:
        return {"row_group": self._row_group, "index_within_row_group": self._index}

    def set_state(self, state: dict[str, Any]) -> None:
        if state["row_group"] != self._row_group:
            self._columns = None
        self._row_group = state["row_group"]
        self._index = state["index_within_row_group"]

    def close(self) -> None:
        super().close()
        self._columns = None
        self._file.close()


class ParquetIterDataset(IterDataset[dict[str, Any]]):
    """Rows of a file as dicts, or of several files in turn. The options are passed to `pyarrow.parquet.ParquetFile`."""

    def __init__(self, path: Any, **read_kwargs: Any) -> None:
        super().__init__()
        self._path = path
        self._read_kwargs = read_kwargs

    def set_slice(self, sl: slice, sequential_slice: bool = False) -> None:
        """Keeps only the files of a slice, as a host's share."""
        del sequential_slice
        if isinstance(self._path, str) or not isinstance(self._path, Sequence):
            raise ValueError(f"one file cannot be divided: {self._path}")
        self._path = self._path[sl]

    def _interleaved(self) -> IterDataset[Any] | None:
        if isinstance(self._path, str) or not isinstance(self._path, Sequence):
            return None
        from gristmill.compat.grain._interleave import InterleaveIterDataset

        paths: Sequence[Any] = self._path
        files = [ParquetIterDataset(path, **self._read_kwargs) for path in paths]
        return InterleaveIterDataset(files, cycle_length=min(len(files), _CYCLE))

    def __iter__(self) -> DatasetIterator[dict[str, Any]]:
        several = self._interleaved()
        return _ParquetIterator(self._path, self._read_kwargs) if several is None else several.__iter__()

    def __str__(self) -> str:
        return f"ParquetIterDataset(path={self._path})"
