"""Puts batches on JAX devices: prefetched, sharded, and resumable at the trainer's position.

Imported on first use of `gristmill.jax`. Requires JAX.
"""

from gristmill import _optional

try:
    import jax as _jax  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ModuleNotFoundError as _missing:
    raise _optional.needed(_missing, "jax", "JAX") from None

from gristmill._maxtext import MaxTextKeys as MaxTextKeys
from gristmill._maxtext import maxtext_keys as maxtext_keys
from gristmill.jax._ends import steps_for as steps_for
from gristmill.jax._iterator import DeviceIterator as DeviceIterator
from gristmill.jax._iterator import device_put as device_put
from gristmill.jax._share import share as share
from gristmill.jax._shards import part_for as part_for
from gristmill.jax._shards import shard_for as shard_for
