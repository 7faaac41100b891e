"""An actor on another machine that serves a single pass."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from gristmill import _gristmill, _remote
from gristmill.ray._links import home


def settle(folder: str | None) -> str:
    """Sets up this process as an actor, in the trainer's folder if it exists here. Returns the name of the machine."""
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)
    host = home(import_module("ray"))
    # Included in the notes of exceptions of functions.
    _remote.on_machine = f" on {host}"
    return host


def who(host: str) -> tuple[str, str]:
    """Returns a description of the process and machine, and the name of the machine."""
    return f"pid {os.getpid()} on {host}", host


class Worker:
    """An actor that evaluates the ranges of elements sent to it."""

    def __init__(self, payload: bytes, folder: str | None, place: int) -> None:
        self._host = settle(folder)
        self._evaluator = getattr(_gristmill, "_Evaluator")(self._host, payload, place)

    def who(self) -> tuple[str, str]:
        """Returns a description of the process and machine, and the name of the machine."""
        return who(self._host)

    def hear(self, message: bytes) -> tuple[bytes, Any]:
        """Returns the answer to a message, and the block of elements in the answer."""
        answer: tuple[bytes, Any] = self._evaluator.hear(message)
        return answer
