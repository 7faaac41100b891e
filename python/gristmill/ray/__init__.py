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

from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from gristmill._gristmill import IterDataset, MapDataset
from gristmill._options import size
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
        hedge: A chunk that takes so many times as long as 99 of 100 do is asked of another actor, too, of another machine if there is one, and the first answer
            counts. With `None` whoever has it is waited for.
        deadline: Seconds that a range of elements may take before its actor counts as hanging, and is ended; `None` for ever.
        compress: Whether blocks of actors on other machines are packed. By `"auto"` integers are narrowed, and what is left goes
            through LZ4, where the link is measured to be so slow that this takes less time than it saves; blocks of actors on this machine are viewed where they
            lie. With `"always"` all are packed, on this machine too, and with `"never"` none. The report says of each machine what crossed, and why so.
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
        deadline=deadline,
        compress=compress,
        idle=idle,
        resources=resources,
        runtime_env=runtime_env,
        pool=pool,
    )
    batches: DatasetIterator[_T] = dataset.loader(workers=cast("bool", engine), **kwargs)
    return batches
