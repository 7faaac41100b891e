"""What runs on another machine."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from gristmill import _gristmill


def go_to(folder: str | None) -> None:
    """Has relative paths lead from where the trainer is, where this machine has that folder."""
    if folder is not None:
        with suppress(OSError):
            os.chdir(folder)


class Worker:
    """An actor: evaluates what it is sent."""

    def __init__(self, payload: bytes, folder: str | None, place: int) -> None:
        go_to(folder)
        # What tells of exceptions of functions.
        from gristmill import _remote

        ray: Any = import_module("ray")
        self._host: str = ray.util.get_node_ip_address()
        _remote.on_machine = f" on {self._host}"
        self._evaluator = getattr(_gristmill, "_Evaluator")(self._host, payload, place)

    def who(self) -> tuple[str, str]:
        """The process and the machine, in words; and the machine."""
        return f"pid {os.getpid()} on {self._host}", self._host

    def hear(self, message: bytes) -> tuple[bytes, Any]:
        """The answer to a message, and the block that it made."""
        answer: tuple[bytes, Any] = self._evaluator.hear(message)
        return answer
