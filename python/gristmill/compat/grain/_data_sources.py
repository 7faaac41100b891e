"""Sources for a `DataLoader` or `MapDataset.source`."""

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, SupportsIndex, cast

import gristmill as gm
from gristmill.compat.grain._base import RandomAccessDataSource as RandomAccessDataSource


class RangeDataSource:
    """Integers of a Python `range`."""

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

    DIFFERENCE: workers receive the data they read, so nothing is shared under a name.
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
        """Does nothing: all memory belongs to this process."""

    def unlink(self) -> None:
        """Does nothing: there is no shared memory."""

    def __repr__(self) -> str:
        return f"InMemoryDataSource(name={self._name}, len={len(self)})"


_Path = str | os.PathLike[str]


def _part(path: Any) -> tuple[str, slice | None]:
    """Returns the file and record slice of a path, `file[3:10]` or a TFDS instruction; the slice is `None` for all."""
    if not isinstance(path, (str, os.PathLike)):
        return os.fspath(path.filename), slice(path.skip, path.skip + path.take)
    text = os.fspath(cast("_Path", path))
    some = re.fullmatch(r"(.*)\[(\d+):(\d+)\]", text)
    return (some[1], slice(int(some[2]), int(some[3]))) if some else (text, None)


def _records(parts: Sequence[tuple[str, slice | None]]) -> gm.MapDataset:
    """Returns the concatenated records of files. Consecutive whole files are opened together."""
    datasets: list[gm.MapDataset] = []
    for _, run in groupby(enumerate(parts), lambda part: None if part[1][1] is None else part[0]):
        files = [part for _, part in run]
        # Escaped: Grain takes a path literally, without wildcards.
        records = gm.MapDataset.array_record([glob.escape(path) for path, _ in files])
        some = files[0][1]
        datasets.append(records if some is None else records[some])
    return datasets[0] if len(datasets) == 1 else gm.MapDataset.concatenate(datasets)


class ArrayRecordDataSource:
    """Records of ArrayRecord files, given as paths, `path[start:stop]`, or TFDS file instructions.

    DIFFERENCE: files of any group size are read without a warning. A damaged record is an error with its position.
    `reader_options` belong to Grain's reader and have no effect.
    """

    def __init__(self, paths: Any, reader_options: dict[str, str] | None = None) -> None:
        one = isinstance(paths, (str, os.PathLike)) or hasattr(paths, "filename")
        if not one and not isinstance(paths, Sequence):
            raise ValueError(f"paths are a path, a FileInstruction or a sequence of these, got {type(paths).__name__}")
        parts = [_part(path) for path in ([paths] if one else cast("Sequence[Any]", paths))]
        if not parts:
            raise ValueError("at least one path is needed")
        self._paths = [path for path, _ in parts]
        self._records = _records(parts)

    @property
    def paths(self) -> list[str]:
        """Paths of the files."""
        return self._paths

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, record_key: SupportsIndex) -> bytes:
        key = record_key.__index__()
        if not 0 <= key < len(self):
            raise ValueError(f"record {key} of {len(self)}")
        record: bytes = self._records[key]
        return record

    def __getitems__(self, record_keys: Sequence[SupportsIndex]) -> list[bytes]:
        return [self[key] for key in record_keys]

    def __iter__(self) -> Iterator[bytes]:
        return (self[key] for key in range(len(self)))

    def __enter__(self) -> "ArrayRecordDataSource":
        return self

    def __exit__(self, *_exception: object) -> None:
        """Does nothing: the files stay mapped while a dataset reads them."""

    def __repr__(self) -> str:
        # The form in Grain's states.
        paths = hashlib.sha1("".join(self._paths).encode(), usedforsecurity=False)
        return f"ArrayRecordDataSource(hash_of_paths={paths.hexdigest()})"


def native(source: Any) -> gm.MapDataset | None:
    """Returns the native dataset of a source, or `None` for subclasses and other sources."""
    return source._records if type(source) is ArrayRecordDataSource else None
