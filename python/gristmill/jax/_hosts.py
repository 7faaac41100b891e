"""Exchange of batch digests between processes through the key-value store of `jax.distributed`."""

from collections.abc import Sequence
from typing import Any, cast

import jax

from gristmill import _hosts
from gristmill._gristmill import Part

_jax = cast("Any", jax)


class _Store:
    """The store of JAX's coordinator. It works without device computations."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def set(self, key: str, value: str) -> None:
        self._client.key_value_set(key, value)

    def get(self, prefix: str, names: Sequence[str]) -> dict[str, str]:
        return {key.rsplit("/", 1)[-1]: value for key, value in self._client.key_value_dir_get(prefix)}

    def delete(self, key: str) -> None:
        self._client.key_value_delete(key)


def guarded(part: Part, processes: Sequence[int]) -> Part:
    """Returns `part` with an exchange to the processes that share its batches, if there are several."""
    client = _client()
    process: int = _jax.process_index()
    if client is None or len(processes) < 2 or process not in processes:
        return part
    group = "jax-" + "-".join(map(str, processes)) if len(processes) < _jax.process_count() else "jax"
    host, hosts = list(processes).index(process), len(processes)
    return _hosts.guarded(part, lambda: _hosts.StoreExchange(_Store(client), group, host, hosts))


def _client() -> Any:
    """Returns JAX's coordinator client, or `None` if it is absent or its interface has changed: JAX exports no name."""
    try:
        from jax._src import distributed  # noqa: PLC0415, PLC2701
    except ImportError:
        return None
    client: Any = getattr(cast("Any", distributed).global_state, "client", None)
    wanted = ("key_value_set", "key_value_dir_get", "key_value_delete")
    return client if all(hasattr(client, name) for name in wanted) else None
