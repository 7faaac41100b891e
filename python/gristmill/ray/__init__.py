"""Other machines evaluate the elementwise part of a pipeline: actors of a Ray cluster.

```python
import gristmill as gm

with gm.ray.loader(dataset, actors=(2, 16), cpus_per_actor=4, ram_budget="2GiB") as batches:
    for batch in batches:
        ...
```

The elements, their order and the states are those of `dataset.loader()`, whatever happens to actors and machines: chunks of the
pipeline are asked for by their global index, what an actor did not answer is asked of another, and nobody's memory of the stream is in them.
"""

from __future__ import annotations

import socket
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gristmill._errors import ConfigError, UnsupportedError, WorkerError
from gristmill._gristmill import IterDataset, MapDataset
from gristmill._gristmill import __version__ as _version
from gristmill._options import size
from gristmill._workers import current_folder as _current_folder
from gristmill.ray._engine import Engine as _Engine
from gristmill.ray._seat import Pool as _Pool

if TYPE_CHECKING:
    from gristmill._gristmill import DatasetIterator

__all__ = ["loader"]

_T = TypeVar("_T")

#: Seconds within which the head of a cluster answers.
_ANSWERS = 10.0
#: The share of Ray's object store that blocks may take: beyond it Ray writes to a disk what it does not find room for.
_OF_STORE = 0.6


def loader(
    dataset: MapDataset[_T] | IterDataset[_T],
    *,
    pool: str | None = None,
    actors: int | tuple[int, int] = (1, 8),
    cpus_per_actor: int = 1,
    threads: int | None = None,
    ram_budget: str | int = "1GiB",
    block: str | int = "8MiB",
    hedge: float | None = 3.0,
    idle: float = 60.0,
    resources: dict[str, float] | None = None,
    runtime_env: dict[str, Any] | None = None,
    address: str | None = None,
    **kwargs: Any,
) -> DatasetIterator[_T]:
    """Starts a pass whose elementwise part is evaluated by actors of a Ray cluster.

    Stateful stages (packing, batches, window shuffles) run here, as they do beside worker processes. Where `mp_prefetch` stands in the pipeline, the
    actors evaluate what is in front of it.

    Args:
        dataset: The pipeline. Functions of it travel by value, by `cloudpickle`; a `MapDataset` is read in order.
        pool: A name. Trainers of the same cluster that give the same share its actors, whatever pipelines they have; where those are the
            same, an actor keeps what it made for 2 s, so that others need not have it made again. Actors end when nobody uses them.
        actors: Actors at first and at most; a number for just so many. More are started while the loop waits, and they leave again when
            they have nothing to do.
        cpus_per_actor: Cores that each asks Ray for.
        threads: Threads of each; as many as it has cores where that is not said, and one where Python functions are evaluated.
        ram_budget: The most memory that elements take which are under way, ready or in use by this loop, in Ray's object store. At most
            60 % of the store of this machine, so that nothing is written to its disk.
        block: The size of what an actor sends at once, about.
        hedge: A chunk that takes so many times as long as 99 of 100 do is asked of an actor on another machine, too, and the first answer
            counts. With `None` whoever has it is waited for.
        idle: Seconds of too little work behind which there is one actor fewer. There are more, at most twice as many at a time, where the loop
            waits for 2 % of the time and `ram_budget` is not used up; what brings nothing is taken back. Nothing follows how busy cores are.
        resources: Resources of its own that each actor asks for: `{"input": 1}` keeps them on machines that have that.
        runtime_env: The environment of actors, as Ray takes it.
        address: The cluster, as `ray.init` takes it, if none is connected yet.
        **kwargs: Arguments of `IterDataset.loader`: `part`, `deal`, `guard`, `keys`, `buffer`, `writable`.

    Returns:
        The pass, as `dataset.loader()` returns it. States of either restore in the other, with any number of actors.

    Raises:
        ConfigError: An argument is impossible, or not that of others who share `pool`.
        UnsupportedError: Ray is not installed.
        WorkerError: No actor can be started, or the cluster is lost; and what functions raise arrives as from worker processes.
    """
    if isinstance(dataset, MapDataset):
        dataset = dataset.to_iter_dataset()
    engine = _prepared(
        address,
        actors=actors,
        cpus=cpus_per_actor,
        threads=threads,
        ram_budget=size("ram_budget", ram_budget) or 0,
        block=size("block", block) or 0,
        hedge=hedge,
        idle=idle,
        resources=resources,
        runtime_env=runtime_env,
        pool=pool,
    )
    batches: DatasetIterator[_T] = dataset.loader(workers=cast("bool", engine), **kwargs)
    return batches


def _prepared(
    address: str | None,
    *,
    actors: int | tuple[int, int],
    cpus: int,
    threads: int | None,
    ram_budget: int,
    block: int = 8 << 20,
    hedge: float | None = 3.0,
    idle: float = 60.0,
    resources: dict[str, float] | None = None,
    runtime_env: dict[str, Any] | None = None,
    pool: str | None = None,
) -> _Engine:
    """The way in which actors are started, of arguments that are checked."""
    ray = _ray(address)
    least, most = (actors, actors) if isinstance(actors, int) else actors
    if not 1 <= least <= most:
        raise ConfigError(f"actors is {actors!r}, and must be a number, or (at first, at most), of 1 or more")
    if hedge is not None and not hedge >= 1:
        raise ConfigError(f"hedge is {hedge!r}, and must be 1 or more, or None")
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
        facts = {"cpus_per_actor": cpus, "threads": threads or cpus, "resources": resources or {}, "runtime_env": runtime_env or {}}
        facts |= {"folder": _current_folder(), "gristmill": _version}
        shared = _Pool(ray, pool, options, facts, 2 * block * facts["threads"])
    return _Engine(ray, (least, most), threads, cpus, _budget(ray, ram_budget), block, hedge, options, idle, shared)


def _ray(address: str | None) -> Any:
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UnsupportedError("gristmill.ray needs Ray: `pip install ray`") from error
    if not ray.is_initialized():
        _check_answers(address)
        # What Ray says while it starts is not this program's.
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level="WARNING")
        except ConnectionError as error:
            text = f"no Ray cluster is found at {address!r}: `ray start --head` starts one, and 'local' is one for this program"
            raise WorkerError(text) from error
    return ray


def _check_answers(address: str | None) -> None:
    """Ray waits for a minute where nobody answers, and ends the process."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS).close()
    except OSError as error:
        raise WorkerError(f"no Ray cluster answers at {address}: {error}") from error


def _budget(ray: Any, asked: int) -> int:
    """What may lie in the object store of this machine, of what was `asked` for."""
    here = ray.get_runtime_context().get_node_id()
    node = next((node for node in ray.nodes() if node["NodeID"] == here), None)
    store = int(node["Resources"].get("object_store_memory", 0)) if node else 0
    return min(asked, int(store * _OF_STORE)) if store else asked
