"""Host memory as JAX's own, for as long as an array has it."""

from typing import Any, cast

import jax
import numpy as np

from gristmill._gristmill import Lease
from gristmill.jax._target import check_leaf

_jax = cast("Any", jax)


def share(batch: Any) -> Any:
    """The arrays of `batch` as JAX arrays of the CPU that lie where they are, handed over by DLPack.

    On a CPU `jax.device_put` does not copy either, but JAX only lets go of the memory when it is called next, or when
    Python collects: what workers wrote is theirs again that late. Here it is when the last array is gone, on whatever
    thread, and without the interpreter. It takes longer to call, some 70 µs for each array: for a few large ones.

    Memory that is not gristmill's, or that may be written to, is copied once, and so is what does not begin at a multiple
    of 64 bytes, or has another dtype in JAX. What no device holds is refused as by `device_put`.
    """
    return _jax.tree_util.tree_map_with_path(_shared, batch)


def _shared(path: Any, leaf: Any) -> Any:
    check_leaf(f"batch{_jax.tree_util.keystr(path)}", leaf)
    return leaf if isinstance(leaf, jax.Array) else _jax.dlpack.from_dlpack(Lease(np.asarray(leaf)))
