"""Where the data of several processes ends: the same number of steps for all of them."""

from collections.abc import Mapping
from typing import Any, Literal, cast

import jax
import numpy as np

from gristmill import _errors

_jax = cast("Any", jax)

ENDS = ("drop", "pad", "agree")


def steps_for(length: int, global_batch: int, end: Literal["drop", "pad"] = "drop") -> int:
    """How many batches of `global_batch` rows a dataset of `length` elements gives: `max_steps` of `device_put`.

    `length` is that of the whole, over all epochs, and not of one shard. The number is the same on every process, with
    no word between them: with `end="drop"` that of whole batches, which each shard has; with `end="pad"` as many as the
    longest shard fills, the last of them in part.

    Args:
        length: Elements of the whole.
        global_batch: Rows of a batch, those of all processes together.
        end: What becomes of the last rows if they do not fill a batch: they are left out, or the batch is filled up.

    Raises:
        ConfigError: The length is negative, or a batch has less than 1 row.
    """
    if length < 0 or global_batch < 1:
        raise _errors.make("config", f"{length} elements in batches of {global_batch} rows", None)
    return length // global_batch if end == "drop" else -(-length // global_batch)


class Padding:
    """Makes batches whole, and others that are nothing but padding, and says by weights which rows are which."""

    def __init__(self, rows: int, values: Mapping[str, Any], weights: str) -> None:
        self._rows = rows
        self._values = values
        self._weights = weights
        self._like: Any = None
        self._empty: Any = None

    def of_rows(self, rows: int) -> "Padding":
        """The same for batches of so many rows, which has no example yet."""
        return Padding(rows, self._values, self._weights)

    @property
    def has_example(self) -> bool:
        """Whether there was a batch, so that others can be made like it."""
        return self._like is not None

    def fill(self, batch: Any) -> Any:
        """The batch with a column of weights, and with padding where it has fewer rows than others."""
        if not isinstance(batch, Mapping):
            message = f"a padded batch has a column of weights beside others, and this one is {type(batch).__name__}"
            raise _errors.make("data", message, 'map elements to dicts, or use end="agree"')
        if self._weights in batch:
            raise _errors.make("data", f"the batch has {self._weights!r} already", "choose another name by `weights`")
        columns = cast("Mapping[str, Any]", batch)
        if self._like is None:
            self._check_names(columns)
        rows = self._rows_of(columns)
        if rows > self._rows:
            message = f"a batch of {rows} rows, and each process gives {self._rows} of a global batch"
            raise _errors.make("data", message, "batch by global_batch // count of `shard_for`")
        self._like = columns
        weights = np.zeros(self._rows, np.float32)
        weights[:rows] = 1
        whole = columns if rows == self._rows else self._padded(columns, rows)
        return {**whole, self._weights: weights}

    def empty(self) -> Any:
        """A batch that is padding alone, like the one that was filled last."""
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
        """The value that `values` has for a leaf, or for a column that it lies in; else 0."""
        value: Any = self._values
        for step in path:
            if isinstance(value, Mapping):
                value = cast("Any", value).get(getattr(step, "key", None), 0)
        return 0 if isinstance(value, Mapping) else value

    def _check_names(self, columns: Mapping[str, Any]) -> None:
        unknown = sorted(set(self._values) - set(columns))
        if unknown:
            message = f"`pad_values` has {unknown}, and a batch has {sorted(columns)}"
            raise _errors.make("config", message, None)

    def _rows_of(self, columns: Mapping[str, Any]) -> int:
        rows = {len(leaf) for leaf in _jax.tree_util.tree_leaves(columns) if np.ndim(leaf) > 0}
        if len(rows) != 1:
            message = f"the columns of a batch have {sorted(rows)} rows; padding is for batches whose columns have as many"
            raise _errors.make("data", message, None)
        return rows.pop()
