"""Evaluates the elementwise part of a pipeline on other machines, by actors of a Ray cluster.

```python
import gristmill as gm

with gm.ray.loader(dataset, actors=(2, 16), cpus_per_actor=4, ram_budget="2GiB") as batches:
    for batch in batches:
        ...
```

The elements, their order and the states equal the results of `dataset.loader()`, even if actors or machines fail.
Actors evaluate chunks of the pipeline by global index and hold no state of the stream. A chunk without an answer is
sent to another actor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from gristmill._gristmill import IterDataset, MapDataset
from gristmill._checks import size
from gristmill.ray._cluster import prepared as _prepared

if TYPE_CHECKING:
    from gristmill._gristmill import DatasetIterator

__all__ = ["loader"]

_T = TypeVar("_T")


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
    deadline: float | None = 300.0,
    compress: Literal["auto", "never", "always"] = "auto",
    idle: float = 60.0,
    resources: dict[str, float] | None = None,
    runtime_env: dict[str, Any] | None = None,
    address: str | None = None,
    **kwargs: Any,
) -> DatasetIterator[_T]:
    """Starts a pass in which actors of a Ray cluster evaluate the elementwise part of the pipeline.

    Stateful stages (packing, batches, window shuffles) run in this process, as they do with worker processes. If the
    pipeline contains `mp_prefetch`, the actors evaluate the stages before it.

    Args:
        dataset: The pipeline. Its functions are pickled by value with `cloudpickle`; a `MapDataset` is read in order.
        pool: Name of a shared pool of actors. Trainers of a cluster that give the same name share its actors, with any
            pipelines. For trainers with equal pipelines an actor keeps each result for 2 s, so that the others can
            reuse it. Actors end when no trainer uses them.
        actors: Initial and maximum number of actors, or a fixed number. Actors are added while the loop waits for data,
            and removed when they are idle.
        cpus_per_actor: Cores that each actor requests from Ray.
        threads: Threads per actor; by default its number of cores, or one if it evaluates Python functions.
        ram_budget: Memory limit in Ray's object store for elements that are in transfer, ready, or in use by this loop.
            At most 60 % of the store of this machine, so that Ray does not spill to disk.
        block: Approximate size of each message from an actor.
        hedge: A chunk is also sent to a second actor, on another machine if possible, if it takes longer than `hedge`
            times the 99th percentile. The first answer counts. `None` disables hedging.
        deadline: Seconds for a range of elements before its actor counts as hanging and is ended; `None` for no limit.
        compress: When to compress blocks. `"auto"` narrows integers and applies LZ4 if the measured link is so slow
            that compression saves time; blocks of actors on this machine are read in place. `"always"` compresses all
            blocks, including blocks on this machine; `"never"` compresses none. The report shows, for each machine,
            the bytes sent and the reason.
        idle: Seconds of low load after which an actor is removed. Actors are added, at most doubling at a time, if the
            loop waits for 2 % of the time and `ram_budget` is not used up. An addition without effect is reverted.
            The CPU load has no influence.
        resources: Custom resources that each actor requests: `{"input": 1}` restricts actors to machines with them.
        runtime_env: Runtime environment of the actors, as for Ray.
        address: Address of the cluster, as for `ray.init`, if Ray is not connected yet.
        **kwargs: Arguments of `IterDataset.loader`: `part`, `deal`, `guard`, `keys`, `buffer`, `writable`.

    Returns:
        The pass, as from `dataset.loader()`. States are interchangeable between both, with any number of actors.

    Raises:
        ConfigError: An argument is invalid, or differs from the other trainers that share `pool`.
        UnsupportedError: Ray is not installed.
        WorkerError: No actor can be started, or the cluster is lost. Exceptions of functions are raised as with worker
            processes.
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
        deadline=deadline,
        compress=compress,
        idle=idle,
        resources=resources,
        runtime_env=runtime_env,
        pool=pool,
    )
    batches: DatasetIterator[_T] = dataset.loader(workers=cast("bool", engine), **kwargs)
    return batches
