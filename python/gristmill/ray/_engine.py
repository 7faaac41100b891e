"""How actors are started for a pass."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from gristmill._workers import current_folder, elsewhere
from gristmill.ray._actor import Worker
from gristmill.ray._driver import Driver
from gristmill.ray._links import home

if TYPE_CHECKING:
    from gristmill._gristmill import IterDataset


class Engine:
    """The way in which actors are started for each pass over a pipeline."""

    #: When blocks are packed: "auto", "never" or "always".
    compress = "auto"

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
        self._driver: Driver | None = None

    def prepare(self, dataset: IterDataset) -> IterDataset:
        """Takes the pipeline to evaluate, and returns the part of it that actors have."""
        evaluated, payload, interpreted = elsewhere(dataset, self.workers[1])
        if interpreted and self._asked is None:
            self.threads = 1
        self.take(payload)
        return evaluated

    def take(self, payload: bytes) -> None:
        """Takes what actors make the pipeline of."""
        # Once for all actors: those of a machine share it.
        self._payload = self._ray.put(payload)

    @property
    def home(self) -> str:
        """The name that Ray gives this machine."""
        return home(self._ray)

    def drive(self, office: Any) -> None:
        """Follows the orders of one pass, from now to its end."""
        # One more than there are threads, so that none waits for the next while an answer is on its way; and one that tells of it.
        options = {**self._options, "max_concurrency": self.threads + 2}
        actor = self._ray.remote(Worker).options(**options)
        asked = {"CPU": self._options["num_cpus"], **self._options.get("resources", {})}
        start = partial(actor.remote, self._payload, current_folder())
        # A pass that goes on elsewhere is begun anew, and would wait for what this one has of the cluster.
        if self._driver is not None:
            self._driver.make_way()
        self._driver = driver = Driver(self._ray, office, start, str(asked))
        for body in (driver.follow_orders, driver.bring_answers):
            threading.Thread(target=body, name="gristmill-ray", daemon=True).start()
