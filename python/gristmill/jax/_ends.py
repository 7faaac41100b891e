"""End of the data on several processes: all processes make an equal number of steps."""

from collections.abc import Mapping
from typing import Any, Literal, cast

import jax
import numpy as np

from gristmill import _errors

_jax = cast("Any", jax)

ENDS = ("drop", "pad", "agree")


def steps_for(length: int, global_batch: int, end: Literal["drop", "pad"] = "drop") -> int:
    """Returns the number of batches of `global_batch` rows in `length` elements: `max_steps` for `device_put`.

    `length` counts the whole dataset over all epochs, not a shard. All processes compute the same number without
    communication. With `end="drop"` it is the number of whole batches. With `end="pad"` it is the number of batches
    that the longest shard fills, including a partial last batch.

    Args:
        length: Elements in the whole dataset.
        global_batch: Rows of a batch over all processes.
        end: Treatment of a partial last batch: `"drop"` omits its rows, `"pad"` fills it up.

    Raises:
        ConfigError: The length is negative, or a batch has less than 1 row.
    """
    if length < 0 or global_batch < 1:
        raise _errors.make("config", f"length is {length} and global_batch is {global_batch}; at least 0 and 1 are required", None)
    return length // global_batch if end == "drop" else -(-length // global_batch)


class Padding:
    """Padding of short batches, batches of padding, and the column of weights that marks the rows of data."""

    def __init__(self, rows: int, values: Mapping[str, Any], weights: str) -> None:
        self._rows = rows
        self._values = values
        self._weights = weights
        self._like: Any = None
        self._empty: Any = None

    def of_rows(self, rows: int) -> "Padding":
        """Returns a padding for batches of `rows` rows, without an example batch."""
        return Padding(rows, self._values, self._weights)

    @property
    def has_example(self) -> bool:
        """Returns whether a batch has been filled, so that batches of padding can be made like it."""
        return self._like is not None

    def fill(self, batch: Any) -> Any:
        """Returns the batch with a column of weights, padded to the full number of rows."""
        if not isinstance(batch, Mapping):
            message = f"a batch is {type(batch).__name__}, and padding adds a column of weights, which needs a dict"
            raise _errors.make("data", message, 'map elements to dicts, or use end="agree"')
        if self._weights in batch:
            raise _errors.make("data", f"the batch already has a column {self._weights!r}", "set another name with `weights`")
        columns = cast("Mapping[str, Any]", batch)
        if self._like is None:
            self._check_names(columns)
        rows = self._rows_of(columns)
        if rows > self._rows:
            message = f"a batch has {rows} rows, and each process supplies {self._rows} rows of a global batch"
            raise _errors.make("data", message, "call batch(global_batch // count), with the count of `shard_for`")
        self._like = columns
        weights = np.zeros(self._rows, np.float32)
        weights[:rows] = 1
        whole = columns if rows == self._rows else self._padded(columns, rows)
        return {**whole, self._weights: weights}

    def empty(self) -> Any:
        """Returns a batch of padding like the last filled batch."""
        if self._empty is None:
            weights = np.zeros(self._rows, np.float32)
            self._empty = {**self._padded(self._like, 0), self._weights: weights}
        return self._empty

    def _padded(self, columns: Mapping[str, Any], rows: int) -> dict[str, Any]:
        def padded(path: Any, leaf: Any) -> Any:
            array = np.asarray(leaf)
            if array.ndim == 0:
                return leaf
            shape = (self._rows, *array.shape[1:])
            try:
                whole = np.full(shape, self._value(path), array.dtype)
            except (OverflowError, TypeError, ValueError) as refused:
                name, value = f"batch{_jax.tree_util.keystr(path)}", self._value(path)
                message = f"{name} is {array.dtype} and cannot be padded with {value!r}: {refused}"
                raise _errors.make("config", message, None) from refused
            whole[:rows] = array[:rows]
            return whole

        return cast("dict[str, Any]", _jax.tree_util.tree_map_with_path(padded, dict(columns)))

    def _value(self, path: Any) -> Any:
        """Returns the entry of `values` for a leaf or for the column that contains it; 0 by default."""
        value: Any = self._values
        for step in path:
            if isinstance(value, Mapping):
                value = cast("Any", value).get(getattr(step, "key", None), 0)
        return 0 if isinstance(value, Mapping) else value

    def _check_names(self, columns: Mapping[str, Any]) -> None:
        unknown = sorted(set(self._values) - set(columns))
        if unknown:
            message = f"`pad_values` has unknown columns {unknown}; a batch has {sorted(columns)}"
            raise _errors.make("config", message, None)

    def _rows_of(self, columns: Mapping[str, Any]) -> int:
        rows = {len(leaf) for leaf in _jax.tree_util.tree_leaves(columns) if np.ndim(leaf) > 0}
        if len(rows) != 1:
            message = f"the columns of a batch have {sorted(rows)} rows; padding requires columns of equal length"
            raise _errors.make("data", message, None)
        return rows.pop()
