"""Prefetching of batches to a device."""

from importlib import import_module
from typing import Any

from gristmill.compat.grain._dataset import IterDataset
from gristmill.compat.grain._prefetch import ThreadPrefetchIterDataset


def device_put(
    ds: IterDataset[Any], device: Any, *, cpu_buffer_size: int = 4, device_buffer_size: int = 2
) -> IterDataset[Any]:
    """Returns `ds` with every element sent to a JAX device or sharding on a separate thread."""
    jax: Any = import_module("jax")
    ahead = ThreadPrefetchIterDataset(ds, prefetch_buffer_size=cpu_buffer_size)
    sent = ahead.map(lambda element: jax.device_put(element, device))
    return ThreadPrefetchIterDataset(sent, prefetch_buffer_size=device_buffer_size)
