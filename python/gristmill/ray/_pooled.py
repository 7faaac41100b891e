"""What runs on another machine where several trainers share it."""

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

#: Seconds in which something has to be heard of a trainer: one that is killed leaves nothing behind for longer.
PATIENCE = 10.0
#: Seconds for which an actor stays that nobody leases any more: passes of one trainer follow each other.
LINGER = 2.0
#: Seconds after which a note on an actor that has died is dropped: every trainer of the pool has read it by then.
NOTED = 600.0
_LOOK = 0.5


class Pooled:
    """An actor of a pool: evaluates for each trainer that leases it, and ends by itself where nobody does."""

    def __init__(self, facts: dict[str, Any], place: int, kept_bytes: int) -> None:
        self._ray: Any = import_module("ray")
        self._host = settle(facts["folder"])
        self._facts = facts
        # This actor may replace one that has died, and left notes.
        Notes().drop_old()
        #: Seconds for which it stays without a lease: where the one that started it died at once, nobody ever comes.
        self._stays = PATIENCE
        self._worker = getattr(_gristmill, "_Pooled")(self._host, place, facts["threads"], kept_bytes, self._note)
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

    def _note(self, lease: str, begins: bool) -> None:
        """Notes that an element of a lease may kill this actor, or that it did not."""
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
    """Notes in the cluster on what may end an actor. The notes of an actor outlive the actor."""

    def __init__(self) -> None:
        self._kv: Any = import_module("ray.experimental.internal_kv")

    def add(self, actor: str, lease: str, *, kills: bool = False) -> None:
        """Notes that an element of a lease may kill an actor, or that its trainer `kills` the actor."""
        why = _KILLS if kills else _MAY_KILL
        self._kv._internal_kv_put(_note(actor, lease), why + str(time.time()).encode(), overwrite=True, namespace=_SPACE)

    def drop(self, actor: str, lease: str) -> None:
        """Drops a note: the actor survived."""
        self._kv._internal_kv_del(_note(actor, lease), namespace=_SPACE)

    def drop_old(self) -> None:
        """Drops notes that no trainer reads any more."""
        for note, value in self._all(_NOTE):
            if float(value[1:]) < time.time() - NOTED:
                self._kv._internal_kv_del(note, namespace=_SPACE)

    def blame(self, actor: str, lease: str) -> str:
        """Whose element ended an actor: that of the lease (`own`), of `others`, or `unknown`."""
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
