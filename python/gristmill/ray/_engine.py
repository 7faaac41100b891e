"""Starts the actors of a pass."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from gristmill._workers import elsewhere
from gristmill.ray._driver import Driver
from gristmill.ray._links import home
from gristmill.ray._seat import Leases, Owned, Pool, key_of

if TYPE_CHECKING:
    from gristmill._gristmill import IterDataset


class Engine:
    """The actors' configuration, from which each pass over a pipeline starts its actors."""

    def __init__(
        self,
        ray: Any,
        workers: tuple[int, int],
        threads: int | None,
        cpus: int,
        ram_budget: int,
        block: int,
        hedge: float | None,
        deadline: float | None,
        compress: str,
        options: dict[str, Any],
        idle: float,
        pool: Pool | None,
    ) -> None:
        self.workers, self.ram_budget, self.block, self.hedge = workers, ram_budget, block, hedge
        self.buffer, self.deadline, self.idle, self.shared = workers[1], deadline, idle, pool is not None
        #: When to compress blocks: "auto", "never" or "always".
        self.compress = compress
        self._ray, self._asked, self._options, self._pool = ray, threads, options, pool
        self.threads = threads or cpus
        self._payload: Any = None
        self._key = ""
        self._driver: Driver | None = None

    def prepare(self, dataset: IterDataset) -> IterDataset:
        """Takes the pipeline and returns the part of it that the actors evaluate."""
        evaluated, payload, interpreted = elsewhere(dataset, self.workers[1])
        if interpreted and self._asked is None:
            self.threads = 1
        self.take(payload)
        return evaluated

    def take(self, payload: bytes) -> None:
        """Stores the payload from which actors build the pipeline."""
        if self._pool is not None:
            self._pool.check()
            self._key = key_of(payload)
        # A single object for all actors: actors on a machine share the copy.
        self._payload = self._ray.put(payload)

    @property
    def home(self) -> str:
        """The name that Ray gives this machine."""
        return home(self._ray)

    def drive(self, office: Any) -> None:
        """Starts to execute the orders of a pass, until it ends."""
        if self._pool is None:
            actors: Owned | Leases = Owned(self._ray, self._options, self.threads, self._payload)
        else:
            actors = self._pool.leases(self._payload, self._key)
        asked = {"CPU": self._options["num_cpus"], **self._options.get("resources", {})}
        # A restarted pass would wait for the cluster resources of its predecessor.
        if self._driver is not None:
            self._driver.make_way()
        self._driver = driver = Driver(self._ray, office, actors, str(asked))
        for body in (driver.follow_orders, driver.bring_answers):
            threading.Thread(target=body, name="gristmill-ray", daemon=True).start()
