"""Where batches go: devices and shardings, of this process and of several."""

from typing import Any, cast

import jax
import numpy as np

from gristmill import _errors
from gristmill.jax._shards import shard_for

_jax = cast("Any", jax)


class Target:
    """A device, a sharding, or a tree of them that is a prefix of the batches' own."""

    def __init__(self, sharding: Any, global_batch: int | None) -> None:
        self._sharding = sharding
        self.global_batch = global_batch
        # Of each sharding that reaches over several processes, how many parts it has.
        self._parts: dict[jax.sharding.Sharding, int] = {}
        for leaf in _jax.tree_util.tree_leaves(sharding):
            if isinstance(leaf, jax.sharding.Sharding) and not leaf.is_fully_addressable:
                self._parts[leaf] = shard_for(leaf, global_batch)[1]
        if self.parts > 1 and global_batch is None:
            message = "a sharding over several processes needs `global_batch`, the rows of all processes together"
            raise _errors.make("config", message, None)

    @property
    def parts(self) -> int:
        """Into how many parts a batch is cut, one for each process or group of processes."""
        return max(self._parts.values(), default=1)

    def widest(self) -> Any:
        """Of the shardings over several processes that with the most devices; `None` if there are none."""
        return max(self._parts, key=lambda sharding: len(cast("Any", sharding).device_set), default=None)

    def put(self, batch: Any) -> Any:
        """Starts the transfer, by one call for all arrays of a batch."""
        for path, leaf in _jax.tree_util.tree_flatten_with_path(batch)[0]:
            check_leaf(f"batch{_jax.tree_util.keystr(path)}", leaf)
        if not self._parts:
            return _jax.device_put(batch, self._sharding)
        leaves, tree = _jax.tree_util.tree_flatten(batch)
        shardings = self._shardings_of(batch)
        arrays = [np.asarray(leaf) for leaf in leaves]
        shapes = [self._global_shape(*pair) for pair in zip(shardings, arrays, strict=True)]
        # Always with the shapes: processes with batches of different sizes would not notice otherwise.
        sent = _jax.make_array_from_process_local_data(shardings, arrays, shapes)
        return _jax.tree_util.tree_unflatten(tree, sent)

    def _shardings_of(self, batch: Any) -> list[Any]:
        """One sharding for each leaf of `batch`."""
        shardings: list[Any] = []

        def part_of(sharding: Any, part: Any) -> None:
            if isinstance(sharding, _jax.Device):
                sharding = jax.sharding.SingleDeviceSharding(sharding)
            shardings.extend([sharding] * len(_jax.tree_util.tree_leaves(part)))

        _jax.tree_util.tree_map(part_of, self._sharding, batch)
        return shardings

    def _global_shape(self, sharding: Any, local: np.ndarray[Any, Any]) -> tuple[int, ...]:
        parts = self._parts.get(sharding, 1)
        shape: tuple[int, ...] = local.shape
        if parts == 1:
            return shape
        if not shape or shape[0] * parts != self.global_batch:
            held = f"a batch of shape {shape} on this process, one of {parts}"
            message = f"{held}; all have {self.global_batch} rows"
            raise _errors.make("data", message, "batch(…, drop_remainder=True) gives every process whole batches")
        return (shape[0] * parts, *shape[1:])


def check_leaf(name: str, leaf: Any) -> None:
    """Refuses what a device cannot hold."""
    if isinstance(leaf, (bool, int, float, complex, jax.Array)):
        return
    dtype = getattr(leaf, "dtype", None)
    numeric = isinstance(dtype, np.dtype) and (dtype.kind in "biufc" or _jax.dtypes.issubdtype(dtype, np.number))
    if not numeric:
        kind = f"an array of {dtype}" if isinstance(dtype, np.dtype) else type(leaf).__name__
        message = f"{name} is {kind}, and a device holds numbers only"
        raise _errors.make("data", message, "leave it out in front of `batch`: `.drop_columns(…)`, or `.map(…)`")
    _check_narrowing(name, np.asarray(leaf))


def _check_narrowing(name: str, array: np.ndarray[Any, Any]) -> None:
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return
    narrow = _jax.dtypes.canonicalize_dtype(array.dtype)
    if narrow == array.dtype:
        return
    limits, low, high = np.iinfo(narrow), int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        message = f"{name} is {array.dtype} and has {low} to {high}, which exceeds the {narrow} that JAX makes of it"
        raise _errors.make("data", message, "set `jax_enable_x64`, or bring the numbers into range")
