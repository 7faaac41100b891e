"""Connection to a cluster, and the limits that it sets for a pass."""

from __future__ import annotations

import socket
from importlib import import_module
from typing import Any

from gristmill._errors import ConfigError, UnsupportedError, WorkerError
from gristmill._gristmill import __version__
from gristmill._checks import seconds
from gristmill._workers import current_folder
from gristmill.ray._engine import Engine
from gristmill.ray._seat import Pool

#: Seconds to wait for an answer of the cluster's head.
_ANSWERS = 10.0
#: Maximum share of Ray's object store for blocks: Ray spills to disk if the store is full.
_OF_STORE = 0.6


def prepared(
    address: str | None,
    *,
    actors: int | tuple[int, int],
    cpus: int,
    threads: int | None,
    ram_budget: int,
    block: int = 8 << 20,
    hedge: float | None = 3.0,
    deadline: float | None = 300.0,
    compress: str = "auto",
    idle: float = 60.0,
    resources: dict[str, float] | None = None,
    runtime_env: dict[str, Any] | None = None,
    pool: str | None = None,
) -> Engine:
    """Checks the arguments and returns the engine that starts actors."""
    ray = _ray(address)
    least, most = (actors, actors) if isinstance(actors, int) else actors
    if not 1 <= least <= most:
        raise ConfigError(f"actors is {actors!r}, and must be a number of 1 or more, or a pair (initial, maximum)")
    if hedge is not None and not hedge >= 1:
        raise ConfigError(f"hedge is {hedge!r}, and must be 1 or more, or None")
    if compress not in ("auto", "never", "always"):
        raise ConfigError(f'compress is {compress!r}, and must be "auto", "never" or "always"')
    if deadline is not None:
        seconds("deadline", deadline)
    if not idle > 0:
        raise ConfigError(f"idle is {idle!r}, and must be more than 0 seconds")
    for name, number in (("cpus_per_actor", cpus), ("threads", threads)):
        if number is not None and number < 1:
            raise ConfigError(f"{name} is {number}, and must be 1 or more")
    if pool is not None and (not pool or "/" in pool):
        raise ConfigError(f"pool is {pool!r}, and must be a name without `/`")
    options: dict[str, Any] = {"num_cpus": cpus, "scheduling_strategy": "SPREAD", "max_restarts": 0}
    if resources:
        options["resources"] = resources
    if runtime_env:
        options["runtime_env"] = runtime_env
    shared = None
    if pool is not None:
        each = threads or cpus
        facts: dict[str, Any] = {"cpus_per_actor": cpus, "threads": each, "resources": resources or {}}
        facts |= {"runtime_env": runtime_env or {}, "folder": current_folder(), "gristmill": __version__}
        shared = Pool(ray, pool, options, facts, 2 * block * each)
    return Engine(ray, (least, most), threads, cpus, _budget(ray, ram_budget), block, hedge, deadline, compress, options, idle, shared)


def _ray(address: str | None) -> Any:
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UnsupportedError("gristmill.ray needs Ray: `pip install ray`") from error
    if not ray.is_initialized():
        _check_answers(address)
        # Ray's start-up messages are not part of the program's output.
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level="WARNING")
        except ConnectionError as error:
            text = f"no Ray cluster at {address!r}: start one with `ray start --head`, or use address='local'"
            raise WorkerError(text) from error
    return ray


def _check_answers(address: str | None) -> None:
    """Raises if nothing listens at the address: Ray itself would wait for a minute and then end the process."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS).close()
    except OSError as error:
        raise WorkerError(f"no Ray cluster answers at {address}: {error}") from error


def _budget(ray: Any, asked: int) -> int:
    """Returns the part of the `asked` bytes that fits the object store of this machine."""
    here = ray.get_runtime_context().get_node_id()
    node = next((node for node in ray.nodes() if node["NodeID"] == here), None)
    store = int(node["Resources"].get("object_store_memory", 0)) if node else 0
    return min(asked, int(store * _OF_STORE)) if store else asked
