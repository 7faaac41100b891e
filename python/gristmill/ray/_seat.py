"""What a pass has of an actor: all of it, or a lease."""

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

#: Where actors of pools have their names.
SPACE = "gristmill"


class Own:
    """An actor that is this pass's alone."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray, self._actor = ray, actor
        self.first: Any = actor.who.remote()

    def hear(self, message: bytes) -> Any:
        """Sends a message."""
        return self._actor.hear.remote(message)

    def let_go(self) -> None:
        """Ends it."""
        self._ray.kill(self._actor, no_restart=True)

    def kill(self) -> None:
        """Ends it, whoever uses it."""
        self.let_go()

    def beat(self) -> None:
        """Says that the pass is still there: Ray sees that by itself."""

    def blame(self) -> str:
        """Whose element ended it."""
        return "own"


class Owned:
    """How a pass starts actors of its own."""

    def __init__(self, ray: Any, options: dict[str, Any], threads: int, payload: Any) -> None:
        # One more than there are threads, so that none waits for the next while an answer is on its way; and one that tells of it.
        self._ray, self._payload = ray, payload
        self._actor = ray.remote(Worker).options(**options, max_concurrency=threads + 2)

    def start(self, place: int) -> Own:
        """Starts one."""
        return Own(self._ray, self._actor.remote(self._payload, current_folder(), place))


class Lease:
    """A lease of an actor that other trainers have, too."""

    def __init__(self, ray: Any, actor: Any, name: str, first: Any) -> None:
        self._ray, self._actor, self._name, self.first = ray, actor, name, first
        self._id: str = actor._actor_id.hex()

    def hear(self, message: bytes) -> Any:
        """Sends a message."""
        return self._actor.hear.remote(self._name, message)

    def let_go(self) -> None:
        """Ends the lease."""
        self._actor.leave.options(concurrency_group="control").remote(self._name)

    def kill(self) -> None:
        """Ends the actor, whoever uses it: others are told by a note that it is not their doing."""
        Notes().add(self._id, self._name, kills=True)
        self._ray.kill(self._actor, no_restart=True)

    def beat(self) -> None:
        """Says that the trainer is still there."""
        self._actor.beat.options(concurrency_group="control").remote(self._name)

    def blame(self) -> str:
        """Whose element ended it: `own`, `others` or `unknown`."""
        return Notes().blame(self._id, self._name)


class Pool:
    """Actors that any number of trainers share, by their names."""

    def __init__(self, ray: Any, name: str, options: dict[str, Any], facts: dict[str, Any], kept_bytes: int) -> None:
        self._ray, self._name, self._facts, self._kept_bytes = ray, name, facts, kept_bytes
        # Of several trainers each may ask for as much at a time; who evaluates is decided inside.
        threads = max(16, 4 * (facts["threads"] + 2))
        shared = {"namespace": SPACE, "lifetime": "detached", "get_if_exists": True, "max_concurrency": threads}
        self._actor: Any = ray.remote(concurrency_groups={"control": 2})(Pooled)
        self._options = {**options, **shared}

    def check(self) -> None:
        """Compares with the actors that there are.

        Raises:
            ConfigError: The pool is another.
        """
        named = import_module("ray.util").list_named_actors(all_namespaces=True)
        mine = (each["name"] for each in named if each["namespace"] == SPACE)
        for name in sorted(name for name in mine if name.rpartition("/")[0] == self._name):
            try:
                actor = self._ray.get_actor(name, namespace=SPACE)
                facts = self._ray.get(actor.facts.options(concurrency_group="control").remote(), timeout=10)
            except (ValueError, self._ray.exceptions.RayError):
                # It ends just now, or does not run yet: whoever leases it is told.
                continue
            different = difference(facts, self._facts)
            if different is not None:
                raise ConfigError(f"pool {self._name!r}: {different}; agree on one, or give the pool another name")
            return

    def leases(self, payload: Any, key: str) -> Leases:
        """The leases of one pass."""
        return Leases(self, payload, key)

    def lease(self, place: int, name: str, payload: Any, key: str) -> Lease:
        """Leases the actor in that place, which is started if there is none."""
        actor = self._actor.options(**self._options, name=f"{self._name}/{place}").remote(self._facts, place, self._kept_bytes)
        join = actor.join.options(concurrency_group="control")
        return Lease(self._ray, actor, name, join.remote(name, key, payload, self._facts))


class Leases:
    """How a pass leases actors of a pool."""

    def __init__(self, pool: Pool, payload: Any, key: str) -> None:
        self._pool, self._payload, self._key, self._name = pool, payload, key, uuid.uuid4().hex

    def start(self, place: int) -> Lease:
        """Leases one."""
        return self._pool.lease(place, self._name, self._payload, self._key)


def key_of(payload: bytes) -> str:
    """A name of what is made of a payload: the same in every process that asks for the same."""
    written = payload
    if payload.startswith(MARSHALLED):
        # Which objects it refers to twice depends on who else has them; in this version of the format nothing is referred to.
        written = MARSHALLED + marshal.dumps(marshal.loads(payload[len(MARSHALLED) :]), 2)
    return hashlib.blake2b(written, digest_size=16).hexdigest()
