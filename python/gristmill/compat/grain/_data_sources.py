"""Sources for a `DataLoader` or `MapDataset.source`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gristmill.compat.grain._base import RandomAccessDataSource as RandomAccessDataSource


class RangeDataSource:
    """Whole numbers, as Python's `range`."""

    def __init__(self, start: int, stop: int, step: int) -> None:
        if step == 0:
            raise ValueError("step must not be 0")
        self._range = range(start, stop, step)

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, record_key: int) -> int:
        return self._range[record_key]

    def __repr__(self) -> str:
        r = self._range
        return f"RangeDataSource(start={r.start}, stop={r.stop}, step={r.step})"


class SharedMemoryDataSource(Sequence[Any]):
    """Elements in memory.

    DIFFERENCE: workers are given what they read, so nothing is shared under a name.
    """

    def __init__(self, elements: Sequence[Any] | None = None, *, name: str | None = None) -> None:
        if elements is None:
            raise ValueError("elements are needed: memory that another process has shared is not attached to by name")
        self._elements = list(elements)
        self._name = name

    def __len__(self) -> int:
        return len(self._elements)

    def __getitem__(self, record_key: Any) -> Any:
        return self._elements[record_key]

    def close(self) -> None:
        """Nothing to do: there is only memory of this process."""

    def unlink(self) -> None:
        """Nothing to do."""

    def __repr__(self) -> str:
        return f"InMemoryDataSource(name={self._name}, len={len(self)})"


class ArrayRecordDataSource:
    """Records of ArrayRecord files, by the package `array_record`, which must be installed."""

    def __init__(self, paths: Any, reader_options: dict[str, str] | None = None) -> None:
        try:
            module: Any = import_module("array_record.python.array_record_data_source")
        except ImportError as error:
            raise ImportError("ArrayRecordDataSource needs array_record: pip install array_record") from error
        options = {"reader_options": reader_options} if reader_options else {}
        self._source: Any = module.ArrayRecordDataSource(paths, **options)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, record_key: int) -> bytes:
        record: bytes = self._source[record_key]
        return record

    def __repr__(self) -> str:
        return repr(self._source)
