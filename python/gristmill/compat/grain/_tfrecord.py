"""Records of a TFRecord file, in order.

Users may replace the reader `_TFRecordReader` and the pass `_TFRecordDatasetIterator`.
DIFFERENCE: checksums are verified, a truncated record is an error, and gzip is supported.
"""

import errno
import os
from typing import Any

from gristmill import StateError
from gristmill._gristmill import TfRecordReader
from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator


class _TFRecordReader:
    """A reader of records in order, and a context manager that closes the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not os.path.exists(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        self._reader: TfRecordReader | None = TfRecordReader(path)

    def _open(self) -> TfRecordReader:
        if self._reader is None:
            raise ValueError("the reader is closed")
        return self._reader

    def __next__(self) -> bytes:
        return next(self._open())

    def __iter__(self) -> "_TFRecordReader":
        return self

    def seek(self, offset: int) -> None:
        """Moves to the record that begins at `offset`."""
        self._open().seek(offset)

    def tell(self) -> int:
        """Returns the offset of the next record."""
        return self._open().tell()

    def close(self) -> None:
        """Closes the file."""
        self._reader = None

    def __enter__(self) -> "_TFRecordReader":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class _TFRecordDatasetIterator(DatasetIterator[bytes]):
    """A pass over a file. Its state is the offset of the next record."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._reader: Any = _TFRecordReader(path)

    def __next__(self) -> bytes:
        self._assert_not_closed()
        record: bytes = next(self._reader)
        return record

    def get_state(self) -> dict[str, Any]:
        return {"reader_offset": self._reader.tell()}

    def set_state(self, state: dict[str, Any]) -> None:
        offset = state.get("reader_offset")
        if not isinstance(offset, int):
            raise StateError(f"not a state of a TFRecord stream: reader_offset is {offset!r}, and must be the byte of a record")
        self._reader.seek(offset)

    def close(self) -> None:
        super().close()
        self._reader.close()


class TFRecordIterDataset(IterDataset[bytes]):
    """The records of a file as bytes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = path

    def __iter__(self) -> DatasetIterator[bytes]:
        return _TFRecordDatasetIterator(self._path)

    def __str__(self) -> str:
        return f"TFRecordIterDataset(path={self._path})"
