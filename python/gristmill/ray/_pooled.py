"""What runs on another machine where several trainers share it."""

from __future__ import annotations

import os
import threading
import time
from importlib import import_module
from typing import Any

from gristmill import _gristmill
from gristmill.ray._actor import settle, who

#: Seconds in which something has to be heard of a trainer: one that is killed leaves nothing behind for longer.
PATIENCE = 10.0
#: Seconds for which an actor stays that nobody leases any more: passes of one trainer follow each other.
LINGER = 2.0
_LOOK = 0.5


class Pooled:
    """An actor of a pool: evaluates for each trainer that leases it, and ends by itself where nobody does."""

    def __init__(self, facts: dict[str, Any], place: int, kept_bytes: int) -> None:
        self._ray: Any = import_module("ray")
        self._host = settle(facts["folder"])
        self._facts = facts
        #: Seconds for which it stays without a lease: where the one that started it died at once, nobody ever comes.
        self._stays = PATIENCE
        self._worker = getattr(_gristmill, "_Pooled")(self._host, place, facts["threads"], kept_bytes)
        threading.Thread(target=self._watch, name="gristmill-pool", daemon=True).start()

    def facts(self) -> dict[str, Any]:
        """What trainers that lease it have to agree on."""
        return self._facts

    def join(self, lease: str, key: str, payload: bytes, facts: dict[str, Any]) -> tuple[str, str] | str:
        """Leases it. Returns the process and the machine, in words, and the machine; or why that cannot be."""
        different = difference(self._facts, facts)
        if different is not None:
            return different
        self._worker.join(lease, key, payload)
        self._stays = LINGER
        return who(self._host)

    def beat(self, lease: str) -> bool:
        """Says that the trainer is still there. Returns whether its lease is known."""
        known: bool = self._worker.beat(lease)
        return known

    def leave(self, lease: str) -> None:
        """Lets it go."""
        self._worker.leave(lease)

    def hear(self, lease: str, message: bytes) -> tuple[bytes, Any] | None:
        """The answer to a message, and the block that it made; nothing where the lease has run out."""
        if not self._worker.beat(lease):
            return None
        answer: tuple[bytes, Any] = self._worker.hear(lease, message)
        return answer

    def hear_alone(self, lease: str, message: bytes) -> tuple[bytes, Any] | None:
        """The same of what may kill it: a note says whose that was, for those who lease it, too."""
        notes, name = Notes(), self._ray.get_runtime_context().get_actor_id()
        notes.add(name, lease)
        try:
            return self.hear(lease, message)
        finally:
            notes.drop(name, lease)

    def _watch(self) -> None:
        idle_since = time.monotonic()
        while True:
            time.sleep(_LOOK)
            if self._worker.look_around(PATIENCE) > 0:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > self._stays:
                self._end()

    def _end(self) -> None:
        """Ends this process, as one that is no longer wanted."""
        try:
            self._ray.kill(self._ray.get_runtime_context().current_actor, no_restart=True)
            time.sleep(PATIENCE)
        finally:
            os._exit(0)


def difference(here: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """What a pool has, and what was asked of it, where that is not the same."""
    for name, value in asked.items():
        if here.get(name) != value:
            return f"the pool has {name}={here.get(name)!r}, and this trainer asks for {name}={value!r}"
    return None


class Notes:
    """Notes in the cluster on what may kill an actor: they stay when it does, until the trainer that they are of lets them go."""

    def __init__(self) -> None:
        self._kv: Any = import_module("ray.experimental.internal_kv")

    def add(self, actor: str, lease: str) -> None:
        """Notes that an actor begins with something of a lease that may kill it."""
        self._kv._internal_kv_put(_note(actor, lease), b"", overwrite=True, namespace=_SPACE)

    def drop(self, actor: str, lease: str) -> None:
        """It did not."""
        self._kv._internal_kv_del(_note(actor, lease), namespace=_SPACE)

    def of(self, actor: str) -> list[str]:
        """The leases of what may have killed an actor."""
        prefix = _note(actor, "")
        notes = self._kv._internal_kv_list(prefix, namespace=_SPACE)
        return [note[len(prefix) :].decode() for note in notes]


_SPACE = b"gristmill"


def _note(actor: str, lease: str) -> bytes:
    return f"gristmill-suspect/{actor}/{lease}".encode()
