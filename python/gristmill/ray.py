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

import os
import threading
import traceback
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gristmill import _gristmill
from gristmill._errors import ConfigError, UnsupportedError
from gristmill._gristmill import IterDataset, MapDataset
from gristmill._options import size
from gristmill._workers import elsewhere

if TYPE_CHECKING:
    from gristmill._gristmill import DatasetIterator

__all__ = ["loader"]

_T = TypeVar("_T")

#: The share of Ray's object store that blocks may take: beyond it Ray writes to a disk what it does not find room for.
_OF_STORE = 0.6
#: Seconds after which the threads of a pass look around, where nothing has happened.
_PATIENCE = 0.5
#: The same while answers are awaited: one to what was asked meanwhile is seen so much later.
_LOOK = 0.01


def loader(
    dataset: MapDataset[_T] | IterDataset[_T],
    *,
    actors: int | tuple[int, int] = (1, 8),
    cpus_per_actor: int = 1,
    threads: int | None = None,
    ram_budget: str | int = "1GiB",
    block: str | int = "8MiB",
    hedge: float | None = 3.0,
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
        actors: Actors at first and at most; a number for just so many. More are started while the loop waits, and they leave again when
            they have nothing to do.
        cpus_per_actor: Cores that each asks Ray for.
        threads: Threads of each; as many as it has cores where that is not said, and one where Python functions are evaluated.
        ram_budget: The most memory that elements take which are under way, ready or in use by this loop, in Ray's object store. At most
            60 % of the store of this machine, so that nothing is written to its disk.
        block: The size of what an actor sends at once, about.
        hedge: A chunk that takes so many times as long as 99 of 100 do is asked of an actor on another machine, too, and the first answer
            counts. With `None` whoever has it is waited for.
        resources: Resources of its own that each actor asks for: `{"input": 1}` keeps them on machines that have that.
        runtime_env: The environment of actors, as Ray takes it.
        address: The cluster, as `ray.init` takes it, if none is connected yet.
        **kwargs: Arguments of `IterDataset.loader`: `part`, `deal`, `guard`, `keys`, `buffer`, `writable`.

    Returns:
        The pass, as `dataset.loader()` returns it. States of either restore in the other, with any number of actors.

    Raises:
        ConfigError: An argument is impossible.
        UnsupportedError: Ray is not installed.
        WorkerError: No actor can be started, or the cluster is lost; and what functions raise arrives as from worker processes.
    """
    ray = _ray(address)
    least, most = (actors, actors) if isinstance(actors, int) else actors
    if not 1 <= least <= most:
        raise ConfigError(f"actors is {actors!r}, and must be a number, or (at first, at most), of 1 or more")
    if hedge is not None and not hedge >= 1:
        raise ConfigError(f"hedge is {hedge!r}, and must be 1 or more, or None")
    for name, number in (("cpus_per_actor", cpus_per_actor), ("threads", threads)):
        if number is not None and number < 1:
            raise ConfigError(f"{name} is {number}, and must be 1 or more")
    if isinstance(dataset, MapDataset):
        dataset = dataset.to_iter_dataset()
    budget = _budget(ray, size("ram_budget", ram_budget) or 0)
    options: dict[str, Any] = {"num_cpus": cpus_per_actor, "scheduling_strategy": "SPREAD", "max_restarts": 0}
    if resources:
        options["resources"] = resources
    if runtime_env:
        options["runtime_env"] = runtime_env
    engine = _Engine(ray, (least, most), threads, cpus_per_actor, budget, size("block", block) or 0, hedge, options)
    batches: DatasetIterator[_T] = dataset.loader(workers=cast("bool", engine), **kwargs)
    return batches


def _ray(address: str | None) -> Any:
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UnsupportedError("gristmill.ray needs Ray: `pip install ray`") from error
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    return ray


def _budget(ray: Any, asked: int) -> int:
    """What may lie in the object store of this machine, of what was `asked` for."""
    here = ray.get_runtime_context().get_node_id()
    node = next((node for node in ray.nodes() if node["NodeID"] == here), None)
    store = int(node["Resources"].get("object_store_memory", 0)) if node else 0
    return min(asked, int(store * _OF_STORE)) if store else asked


class _Worker:
    """An actor: evaluates what it is sent."""

    def __init__(self, payload: bytes, place: int) -> None:
        # What tells of exceptions of functions.
        import gristmill._remote as _

        ray: Any = import_module("ray")
        self._host: str = ray.util.get_node_ip_address()
        self._evaluator = getattr(_gristmill, "_Evaluator")(self._host, payload, place)

    def who(self) -> tuple[str, str]:
        """The process and the machine, in words; and the machine."""
        return f"pid {os.getpid()} on {self._host}", self._host

    def hear(self, message: bytes) -> tuple[bytes, Any]:
        """The answer to a message, and the block that it made."""
        answer: tuple[bytes, Any] = self._evaluator.hear(message)
        return answer


class _Engine:
    """The way in which actors are started for each pass over a pipeline."""

    def __init__(
        self,
        ray: Any,
        workers: tuple[int, int],
        threads: int | None,
        cpus: int,
        ram_budget: int,
        block: int,
        hedge: float | None,
        options: dict[str, Any],
    ) -> None:
        self.workers, self.ram_budget, self.block, self.hedge = workers, ram_budget, block, hedge
        self.buffer = workers[1]
        self._ray, self._asked, self._options = ray, threads, options
        self.threads = threads or cpus
        self._payload: Any = None

    def prepare(self, dataset: IterDataset) -> IterDataset:
        """Takes the pipeline to evaluate, and returns the part of it that actors have."""
        evaluated, payload, interpreted = elsewhere(dataset, self.workers[1])
        if interpreted and self._asked is None:
            self.threads = 1
        # Once for all actors: those of a machine share it.
        self._payload = self._ray.put(payload)
        return evaluated

    def drive(self, office: Any) -> None:
        """Follows the orders of one pass, from now to its end."""
        # One more than there are threads, so that none waits for the next while an answer is on its way; and one that tells of it.
        options = {**self._options, "max_concurrency": self.threads + 2}
        actor = self._ray.remote(_Worker).options(**options)
        driver = _Driver(self._ray, office, partial(actor.remote, self._payload))
        for body in (driver.follow_orders, driver.bring_answers):
            threading.Thread(target=body, name="gristmill-ray", daemon=True).start()


class _Driver:
    """Actors of one pass: two threads share it, of which one sends and the other brings what comes back."""

    def __init__(self, ray: Any, office: Any, start: Any) -> None:
        self._ray, self._office, self._start = ray, office, start
        self._changed = threading.Condition()
        #: Of each worker its actor.
        self._actors: dict[int, Any] = {}
        #: What is awaited: the worker, and whether that is its first word.
        self._awaited: dict[Any, tuple[int, bool]] = {}
        self._over = False

    def follow_orders(self) -> None:
        """Does what the office wants done, until the pass is over."""
        try:
            while (order := self._office.next_order(_PATIENCE)) is not None:
                self._follow(*order)
        except BaseException:
            self._give_up(traceback.format_exc())
        finally:
            self._end()

    def _follow(self, what: str, number: int, given: Any) -> None:
        if what == "start":
            try:
                actor = self._start(given)
                first = actor.who.remote()
            except Exception as error:
                self._office.not_started(number, f"an actor cannot be started: {error}")
                return
            with self._changed:
                self._actors[number] = actor
            self._await(first, number, True)
        elif what == "send":
            actor = self._actors.get(number)
            # One that is gone hears nothing; the office knows that, or will.
            if actor is not None:
                self._await(actor.hear.remote(given), number, False)
        elif what == "end":
            self._lose(number, "it was ended", outside=False)

    def _await(self, ref: Any, number: int, first: bool) -> None:
        with self._changed:
            self._awaited[ref] = (number, first)
            self._changed.notify_all()

    def bring_answers(self) -> None:
        """Brings what actors answer to the office, until the pass is over."""
        try:
            while not self._over:
                with self._changed:
                    refs = list(self._awaited)
                    if not refs:
                        self._changed.wait(_PATIENCE)
                        continue
                ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=True)
                if not ready:
                    ready, _ = self._ray.wait(refs, num_returns=1, timeout=_LOOK, fetch_local=True)
                for ref in ready:
                    self._bring(ref)
        except BaseException:
            self._give_up(traceback.format_exc())

    def _bring(self, ref: Any) -> None:
        with self._changed:
            awaited = self._awaited.pop(ref, None)
        if awaited is None:
            return
        number, first = awaited
        exceptions = self._ray.exceptions
        try:
            answer = self._ray.get(ref)
        except exceptions.RayTaskError as error:
            self._lose(number, f"it failed: {error}", outside=False)
        except (exceptions.RayActorError, exceptions.ObjectLostError, exceptions.RaySystemError) as error:
            self._lose(number, _in_short(error), outside=True)
        else:
            if first:
                self._office.started(number, *answer)
            else:
                self._office.answered(number, *answer)

    def _lose(self, number: int, why: str, *, outside: bool) -> None:
        with self._changed:
            actor = self._actors.pop(number, None)
            for ref in [ref for ref, (worker, _) in self._awaited.items() if worker == number]:
                del self._awaited[ref]
        if actor is not None:
            self._ray.kill(actor, no_restart=True)
            self._office.gone(number, why, outside)

    def _give_up(self, why: str) -> None:
        """Ray is lost, or this has a bug: whoever waits is told, and everything ends."""
        for number in list(self._actors):
            try:
                self._lose(number, why, outside=False)
            except BaseException:
                self._office.gone(number, why, False)
        while (order := self._office.next_order(_PATIENCE)) is not None:
            if order[0] == "start":
                self._office.not_started(order[1], why)

    def _end(self) -> None:
        with self._changed:
            self._over, actors = True, list(self._actors.values())
            self._actors.clear()
            self._awaited.clear()
            self._changed.notify_all()
        if self._ray.is_initialized():
            for actor in actors:
                self._ray.kill(actor, no_restart=True)


def _in_short(error: Exception) -> str:
    """The first line of what Ray tells, which goes on about itself."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
