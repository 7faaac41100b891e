"""An actor on another machine that several trainers share."""

from __future__ import annotations

import os
import threading
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gristmill import _gristmill
from gristmill.ray._actor import settle, who

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds without a heartbeat after which a lease expires. The lease of a killed trainer remains until then.
PATIENCE = 10.0
#: Seconds that an actor remains without a lease: passes of a trainer follow each other.
LINGER = 2.0
#: Seconds after which the note on a dead actor is dropped. All trainers of the pool have read it by then.
NOTED = 600.0
_LOOK = 0.5


class Pooled:
    """An actor of a pool: evaluates for each trainer that leases it, and ends when it has no lease left."""

    def __init__(self, facts: dict[str, Any], place: int, kept_bytes: int) -> None:
        self._ray: Any = import_module("ray")
        self._host = settle(facts["folder"])
        self._facts = facts
        # This actor may replace a dead actor that left notes.
        Notes().drop_old()
        #: Seconds that the actor remains without a lease. Its first trainer may die before it takes a lease.
        self._stays = PATIENCE
        self._worker = getattr(_gristmill, "_Pooled")(self._host, place, facts["threads"], kept_bytes, self._note)
        threading.Thread(target=self._watch, name="gristmill-pool", daemon=True).start()

    def facts(self) -> dict[str, Any]:
        """Returns the settings that trainers must agree on to lease this actor."""
        return self._facts

    def join(self, lease: str, key: str, payload: bytes, facts: dict[str, Any]) -> tuple[str, str] | str:
        """Takes a lease. Returns a description of process and machine with the machine's name, or the refusal."""
        different = difference(self._facts, facts)
        if different is not None:
            return different
        self._worker.join(lease, key, payload)
        self._stays = LINGER
        return who(self._host)

    def beat(self, lease: str) -> bool:
        """Receives a heartbeat of a trainer. Returns whether its lease is valid."""
        known: bool = self._worker.beat(lease)
        return known

    def leave(self, lease: str) -> None:
        """Ends a lease."""
        self._worker.leave(lease)

    def hear(self, lease: str, message: bytes) -> tuple[bytes, Any] | None:
        """Returns the answer to a message and its block of elements; `None` if the lease has expired."""
        if not self._worker.beat(lease):
            return None
        answer: tuple[bytes, Any] = self._worker.hear(lease, message)
        return answer

    def _note(self, lease: str, begins: bool) -> None:
        """Adds a note that an element of a lease may kill this actor, or drops the note."""
        notes, name = Notes(), self._ray.get_runtime_context().get_actor_id()
        if begins:
            notes.add(name, lease)
        else:
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
        """Ends this process in an orderly way if Ray cooperates, else by `os._exit`."""
        try:
            self._ray.kill(self._ray.get_runtime_context().current_actor, no_restart=True)
            time.sleep(PATIENCE)
        finally:
            os._exit(0)


def difference(here: dict[str, Any], asked: dict[str, Any]) -> str | None:
    """Returns a description of the first setting that differs, or `None`."""
    for name, value in asked.items():
        if here.get(name) != value:
            return f"the pool has {name}={here.get(name)!r}, and this trainer has {name}={value!r}"
    return None


class Notes:
    """Notes in the cluster about causes of an actor's death. They outlive the actor."""

    def __init__(self) -> None:
        self._kv: Any = import_module("ray.experimental.internal_kv")

    def add(self, actor: str, lease: str, *, kills: bool = False) -> None:
        """Adds a note that an element of a lease may kill an actor. With `kills`, the note blames the trainer of the lease."""
        why = _KILLS if kills else _MAY_KILL
        self._kv._internal_kv_put(_note(actor, lease), why + str(time.time()).encode(), overwrite=True, namespace=_SPACE)

    def drop(self, actor: str, lease: str) -> None:
        """Drops a note after the actor has survived."""
        self._kv._internal_kv_del(_note(actor, lease), namespace=_SPACE)

    def drop_old(self) -> None:
        """Drops notes that no trainer needs any more."""
        for note, value in self._all(_NOTE):
            if float(value[1:]) < time.time() - NOTED:
                self._kv._internal_kv_del(note, namespace=_SPACE)

    def blame(self, actor: str, lease: str) -> str:
        """Returns whose element ended an actor: `own` (of `lease`), `others`, or `unknown`."""
        notes = dict(self._all(_note(actor, "")))
        kills = {note for note, value in notes.items() if value.startswith(_KILLS)}
        ended = kills or set(notes)
        if not ended:
            return "unknown"
        return "own" if _note(actor, lease) in ended else "others"

    def _all(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for note in self._kv._internal_kv_list(prefix, namespace=_SPACE):
            value = self._kv._internal_kv_get(note, namespace=_SPACE)
            if value is not None:
                yield note, value


_MAY_KILL, _KILLS = b"?", b"!"
_SPACE, _NOTE = b"gristmill", b"gristmill-suspect/"


def _note(actor: str, lease: str) -> bytes:
    return _NOTE + f"{actor}/{lease}".encode()
