"""Records of a TFRecord file, in order.

A user's reader may take the place of `_TFRecordReader`, and a user's pass that of `_TFRecordDatasetIterator`.
DIFFERENCE: checksums of lengths are verified, and a file that is cut off in a record is an error.
"""

import os
import struct
from typing import Any, BinaryIO

from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._dataset_iterator import DatasetIterator

_CRC_MASK_DELTA = 0xA282EAD8
_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table: list[int] = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _CRC_MASK_DELTA) & 0xFFFFFFFF


class _TFRecordReader:
    """Reads one record after the other; a context manager that closes the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._reader: BinaryIO = open(path, "rb")

    def __next__(self) -> bytes:
        header = self._reader.read(12)
        if not header:
            raise StopIteration
        start = self._reader.tell() - len(header)
        if len(header) < 12:
            raise ValueError(f"{self._path}: the file ends in the header of the record at byte {start}")
        (length,) = struct.unpack_from("<Q", header)
        (crc,) = struct.unpack_from("<I", header, 8)
        if crc != _masked_crc(header[:8]):
            raise ValueError(f"{self._path}: the length of the record at byte {start} has another checksum")
        record = self._reader.read(length)
        if len(record) < length or len(self._reader.read(4)) < 4:
            raise ValueError(f"{self._path}: the file ends in the record of {length} bytes at byte {start}")
        return record

    def __iter__(self) -> "_TFRecordReader":
        return self

    def seek(self, offset: int) -> None:
        """Goes to the record that begins at `offset`."""
        self._reader.seek(offset)

    def tell(self) -> int:
        """Where the next record begins."""
        return self._reader.tell()

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __enter__(self) -> "_TFRecordReader":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        reader = getattr(self, "_reader", None)
        if reader is not None:
            reader.close()


class _TFRecordDatasetIterator(DatasetIterator[bytes]):
    """A pass over one file; its state is the offset of the next record."""

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
        self._reader.seek(state["reader_offset"])

    def close(self) -> None:
        super().close()
        self._reader.close()


class TFRecordIterDataset(IterDataset[bytes]):
    """The records of one file as bytes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = path

    def __iter__(self) -> DatasetIterator[bytes]:
        return _TFRecordDatasetIterator(self._path)

    def __str__(self) -> str:
        return f"TFRecordIterDataset(path={self._path})"
