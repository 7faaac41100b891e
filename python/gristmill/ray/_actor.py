"""What runs on another machine."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from gristmill import _gristmill, _remote
from gristmill.ray._links import home


def settle(folder: str | None) -> str:
    """Makes this process an actor's, with relative paths from where the trainer is, if this machine has that folder. Returns the machine's name."""
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)
    host = home(import_module("ray"))
    # What tells of exceptions of functions.
    _remote.on_machine = f" on {host}"
    return host


def who(host: str) -> tuple[str, str]:
    """The process and the machine, in words; and the machine."""
    return f"pid {os.getpid()} on {host}", host


class Worker:
    """An actor: evaluates what it is sent."""

    def __init__(self, payload: bytes, folder: str | None, place: int) -> None:
        self._host = settle(folder)
        self._evaluator = getattr(_gristmill, "_Evaluator")(self._host, payload, place)

    def who(self) -> tuple[str, str]:
        """The process and the machine, in words; and the machine."""
        return who(self._host)

    def hear(self, message: bytes) -> tuple[bytes, Any]:
        """The answer to a message, and the block that it made."""
        answer: tuple[bytes, Any] = self._evaluator.hear(message)
        return answer
