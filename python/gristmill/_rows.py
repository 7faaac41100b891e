"""Row operations on batches that are trees of NumPy arrays. Rows run along the leading dimension."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from gristmill import _errors
from gristmill._tree import walk


def num_rows(batch: Any) -> int:
    """Returns the number of rows of a batch."""
    found: dict[int, str] = {}

    def look(path: str, leaf: Any) -> None:
        if not isinstance(leaf, list) and np.ndim(leaf) == 0:
            where = f" {path!r}" if path else ""
            raise _errors.make("data", f"a batch has no rows{where}", "end it with `batch`")
        found.setdefault(len(cast("Any", leaf)), path)

    walk(batch, look)
    if len(found) != 1:
        told = ", ".join(f"{path or 'the batch'} has {rows}" for rows, path in found.items()) or "it has no arrays"
        raise _errors.make("data", f"a batch without a number of rows: {told}", None)
    return next(iter(found))


def leaves(batch: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of a batch, each with its path."""
    found: list[tuple[str, Any]] = []
    walk(batch, lambda path, leaf: found.append((path, leaf)))
    return found


def take(batch: Any, rows: Sequence[int], between: tuple[int, int] | None) -> Any:
    """Returns a batch of the given rows; views if the rows are the range `between`."""
    at: Any = slice(*between) if between else list(rows)

    def pick(_: str, leaf: Any) -> Any:
        if isinstance(leaf, list):
            return [cast("Any", leaf)[row] for row in rows]
        return np.asarray(leaf)[at]

    return walk(batch, pick)
