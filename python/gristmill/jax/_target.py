"""Destinations of batches: devices and shardings, of a single process or of several."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from gristmill import _errors
from gristmill._gristmill import Part
from gristmill.jax._shards import rows_held, shard_for

_jax = cast("Any", jax)


class Layout(NamedTuple):
    """The layout of batches of a part on devices."""

    # Rows of a batch.
    given: int
    # Places in the batch of the rows that the devices hold, in row order; `None` for all rows in batch order.
    places: np.ndarray[Any, Any] | None


class Target:
    """A device, a sharding, or a tree of them that is a prefix of the batches' tree.

    In a sharding over several processes each process supplies its rows: the rows of `shard_for`, or any part that
    includes the rows its devices hold.
    """

    def __init__(self, sharding: Any, global_batch: int | None, part: Part | None = None) -> None:
        self._sharding = sharding
        self.global_batch = global_batch
        # The rows that the devices of this process hold, for each sharding over several processes.
        self._held: dict[jax.sharding.Sharding, list[int]] = {}
        self._layouts: dict[tuple[jax.sharding.Sharding, Part], Layout] = {}
        for leaf in _jax.tree_util.tree_leaves(sharding):
            if isinstance(leaf, jax.sharding.Sharding) and not leaf.is_fully_addressable:
                self._add(leaf, part)

    def _add(self, sharding: jax.sharding.Sharding, part: Part | None) -> None:
        # Rows without numbers count as rows of equal blocks, in the order of processes.
        shares = shard_for(sharding, self.global_batch)[1] if part is None else None
        if self.global_batch is not None:
            self._held[sharding] = rows_held(sharding, self.global_batch)
        elif shares == 1:
            self._held[sharding] = []
        else:
            message = "a sharding over several processes requires `global_batch`, the number of rows of all processes"
            raise _errors.make("config", message, None)

    def rows_of(self, part: Part | None) -> int:
        """Returns the number of rows that this process supplies per batch."""
        total = self.global_batch or 0
        if part is not None and self._held:
            return len(part.rows(total))
        return min((len(held) for held in self._held.values()), default=total)

    def widest(self) -> Any:
        """Returns the sharding over several processes that has the most devices; `None` if there is none."""
        return max(self._held, key=lambda sharding: len(cast("Any", sharding).device_set), default=None)

    def put(self, batch: Any, part: Part | None = None) -> Any:
        """Starts the transfer of a batch, or of the rows of `part`, by a single call for all arrays."""
        for path, leaf in _jax.tree_util.tree_flatten_with_path(batch)[0]:
            check_leaf(f"batch{_jax.tree_util.keystr(path)}", leaf)
        if not self._held:
            return _jax.device_put(batch, self._sharding)
        leaves, tree = _jax.tree_util.tree_flatten(batch)
        shardings = self._shardings_of(batch)
        pairs = [self._laid_out(sharding, np.asarray(leaf), part) for sharding, leaf in zip(shardings, leaves, strict=True)]
        # The global shapes are always given: otherwise processes would not notice batches of different sizes.
        arrays, shapes = [array for array, _ in pairs], [shape for _, shape in pairs]
        sent = _jax.make_array_from_process_local_data(shardings, arrays, shapes)
        return _jax.tree_util.tree_unflatten(tree, sent)

    def _shardings_of(self, batch: Any) -> list[Any]:
        """Returns a sharding for each leaf of `batch`."""
        shardings: list[Any] = []

        def part_of(sharding: Any, part: Any) -> None:
            if isinstance(sharding, _jax.Device):
                sharding = jax.sharding.SingleDeviceSharding(sharding)
            shardings.extend([sharding] * len(_jax.tree_util.tree_leaves(part)))

        _jax.tree_util.tree_map(part_of, self._sharding, batch)
        return shardings

    def _laid_out(
        self, sharding: Any, local: np.ndarray[Any, Any], part: Part | None
    ) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
        """Returns the rows that the devices of this process hold, in order, and the shape of the global array."""
        held, total = self._held.get(sharding), self.global_batch
        everywhere = held is None or total is None or len(held) == total
        if held is None or total is None or (everywhere and (part is None or local.ndim == 0)):
            return local, local.shape
        given, places = (len(held), None) if part is None else self._layout(sharding, part)
        if local.ndim == 0 or local.shape[0] != given:
            message = f"a batch has shape {local.shape}, and this process must supply {given} of {total} rows"
            raise _errors.make("data", message, "use batch(…, drop_remainder=True), so that all batches are whole")
        rows = local if places is None else local[places]
        return rows, (total, *local.shape[1:])

    def _layout(self, sharding: jax.sharding.Sharding, part: Part) -> "Layout":
        """Returns the layout of batches of `part` on the devices of `sharding`."""
        if (sharding, part) not in self._layouts:
            rows, held = part.rows(self.global_batch or 0), self._held[sharding]
            where = {row: place for place, row in enumerate(rows)}
            if not where.keys() >= set(held):
                process = _jax.process_index()
                message = f"the part of process {process} has rows {ranges(rows)}, and its devices hold {ranges(held)}"
                raise _errors.make("config", message, "part=gm.jax.part_for(sharding, global_batch)")
            places = None if rows == held else np.array([where[row] for row in held])
            self._layouts[sharding, part] = Layout(len(rows), places)
        return self._layouts[sharding, part]


def ranges(rows: Iterable[int]) -> str:
    """Formats row numbers, with consecutive numbers as ranges: `0 to 3, 8 to 11`."""
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)


def check_leaf(name: str, leaf: Any) -> None:
    """Raises if a device cannot hold the leaf."""
    if isinstance(leaf, (bool, int, float, complex, jax.Array)):
        return
    dtype = getattr(leaf, "dtype", None)
    numeric = isinstance(dtype, np.dtype) and (dtype.kind in "biufc" or _jax.dtypes.issubdtype(dtype, np.number))
    if not numeric:
        kind = f"an array of {dtype}" if isinstance(dtype, np.dtype) else type(leaf).__name__
        message = f"{name} is {kind}, and devices hold only numbers"
        raise _errors.make("data", message, "remove it before `batch`: `.drop_columns(…)`, or `.map(…)`")
    _check_narrowing(name, np.asarray(leaf))


def _check_narrowing(name: str, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return
    narrow = _jax.dtypes.canonicalize_dtype(array.dtype)
    if narrow == array.dtype:
        return
    limits, low, high = np.iinfo(narrow), int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        message = f"{name} is {array.dtype} with values {low} to {high}, and JAX converts it to {narrow}, which cannot hold them"
        raise _errors.make("data", message, "set `jax_enable_x64`, or map the numbers into the range")
