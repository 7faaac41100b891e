"""A pass's handle on an actor: exclusive use, or a lease."""

from __future__ import annotations

import hashlib
import marshal
import uuid
from importlib import import_module
from typing import Any

from gristmill._errors import ConfigError
from gristmill._workers import MARSHALLED, current_folder
from gristmill.ray._actor import Worker
from gristmill.ray._pooled import Notes, Pooled, difference

#: Ray namespace of the actors of pools.
SPACE = "gristmill"


class Own:
    """An actor used by this pass only."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.first: Any = actor.who.remote()

    def hear(self, message: bytes) -> Any:
        """Sends a message. Returns a reference to the answer."""
        return self._actor.hear.remote(message)

    def let_go(self) -> None:
        """Ends the actor."""
        self._ray.kill(self._actor, no_restart=True)

    def kill(self) -> None:
        """Ends the actor."""
        self.let_go()

    def beat(self) -> None:
        """Does nothing: Ray itself detects the end of the pass."""

    def blame(self) -> str:
        """Returns whose element ended the actor: always `own`."""
        return "own"


class Owned:
    """A factory of actors that a pass uses exclusively."""

    def __init__(self, ray: Any, options: dict[str, Any], threads: int, payload: Any) -> None:
        # One more than the threads, so that no thread idles while an answer is in transfer, and one for reports.
        self._ray, self._payload = ray, payload
        self._actor = ray.remote(Worker).options(**options, max_concurrency=threads + 2)

    def start(self, place: int) -> Own:
        """Starts an actor."""
        return Own(self._ray, self._actor.remote(self._payload, current_folder(), place))


class Lease:
    """A lease on an actor that other trainers also use."""

    def __init__(self, ray: Any, actor: Any, name: str, first: Any) -> None:
        self._ray, self._actor, self._name, self.first = ray, actor, name, first
        self._id: str = actor._actor_id.hex()

    def hear(self, message: bytes) -> Any:
        """Sends a message. Returns a reference to the answer."""
        return self._actor.hear.remote(self._name, message)

    def let_go(self) -> None:
        """Ends the lease."""
        self._actor.leave.options(concurrency_group="control").remote(self._name)

    def kill(self) -> None:
        """Ends the actor for all trainers. A note lets the other trainers see that their elements are not the cause."""
        Notes().add(self._id, self._name, kills=True)
        self._ray.kill(self._actor, no_restart=True)

    def beat(self) -> None:
        """Sends a heartbeat."""
        self._actor.beat.options(concurrency_group="control").remote(self._name)

    def blame(self) -> str:
        """Returns whose element ended the actor: `own`, `others` or `unknown`."""
        return Notes().blame(self._id, self._name)


class Pool:
    """Named actors that any number of trainers share."""

    def __init__(self, ray: Any, name: str, options: dict[str, Any], facts: dict[str, Any], kept_bytes: int) -> None:
        self._ray, self._name, self._facts, self._kept_bytes = ray, name, facts, kept_bytes
        # Several trainers may send their maximum at once. The actor itself schedules the evaluation.
        threads = max(16, 4 * (facts["threads"] + 2))
        shared = {"namespace": SPACE, "lifetime": "detached", "get_if_exists": True, "max_concurrency": threads}
        self._actor: Any = ray.remote(concurrency_groups={"control": 2})(Pooled)
        self._options = {**options, **shared}

    def check(self) -> None:
        """Compares the settings with the actors that exist.

        Raises:
            ConfigError: The settings of the pool differ.
        """
        named = import_module("ray.util").list_named_actors(all_namespaces=True)
        mine = (each["name"] for each in named if each["namespace"] == SPACE)
        for name in sorted(name for name in mine if name.rpartition("/")[0] == self._name):
            try:
                actor = self._ray.get_actor(name, namespace=SPACE)
                facts = self._ray.get(actor.facts.options(concurrency_group="control").remote(), timeout=10)
            except (ValueError, self._ray.exceptions.RayError):
                # The actor is ending or has not started yet. Its lease will fail if the settings differ.
                continue
            different = difference(facts, self._facts)
            if different is not None:
                raise ConfigError(f"pool {self._name!r}: {different}; use equal settings, or another name of the pool")
            return

    def leases(self, payload: Any, key: str) -> Leases:
        """Returns the leases of a pass."""
        return Leases(self, payload, key)

    def lease(self, place: int, name: str, payload: Any, key: str) -> Lease:
        """Leases the actor of `place`, and starts it if there is none."""
        actor = self._actor.options(**self._options, name=f"{self._name}/{place}").remote(self._facts, place, self._kept_bytes)
        join = actor.join.options(concurrency_group="control")
        return Lease(self._ray, actor, name, join.remote(name, key, payload, self._facts))


class Leases:
    """The leases of a pass on the actors of a pool."""

    def __init__(self, pool: Pool, payload: Any, key: str) -> None:
        self._pool, self._payload, self._key, self._name = pool, payload, key, uuid.uuid4().hex

    def start(self, place: int) -> Lease:
        """Leases an actor."""
        return self._pool.lease(place, self._name, self._payload, self._key)


def key_of(payload: bytes) -> str:
    """Returns a key of the pipeline in a payload, equal in every process for equal pipelines."""
    written = payload
    if payload.startswith(MARSHALLED):
        # Marshal's references depend on objects' reference counts. Version 2 of the format writes no references.
        written = MARSHALLED + marshal.dumps(marshal.loads(payload[len(MARSHALLED) :]), 2)
    return hashlib.blake2b(written, digest_size=16).hexdigest()
