"""Forks of this process: what lives off threads belongs to the process that made it."""

import os

from gristmill import _errors

_forks = 0


class Origin:
    """The process that made something."""

    def __init__(self) -> None:
        self._forks, self._process = _forks, os.getpid()

    def is_here(self) -> bool:
        """Whether it is this process, and not one that this is a fork of."""
        return self._forks == _forks and self._process == os.getpid()

    def check(self, what: str, help: str) -> None:
        """Raises `gristmill.WorkerError` in a fork."""
        if not self.is_here():
            place = f"belongs to process {self._process}, and this process, {os.getpid()}, is a fork of it"
            raise _errors.make("worker", f"{what} {place}", help)


def _count() -> None:
    global _forks
    _forks += 1


# A fork of a fork may have the process id of the first.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)
