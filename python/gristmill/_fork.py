"""Detection of forks: an object that depends on threads is usable only in the process that created it."""

import os

from gristmill import _errors

_forks = 0


class Origin:
    """The process that created an object."""

    def __init__(self) -> None:
        self._forks, self._process = _forks, os.getpid()

    def is_here(self) -> bool:
        """Returns whether the current process is that process, and not a fork of it."""
        return self._forks == _forks and self._process == os.getpid()

    def check(self, what: str, help: str) -> None:
        """Raises `gristmill.WorkerError` in a fork of the process."""
        if not self.is_here():
            place = f"belongs to process {self._process}, and this process, {os.getpid()}, is a fork of it"
            raise _errors.make("worker", f"{what} {place}", help)


def _count() -> None:
    global _forks
    _forks += 1


# Counted in addition to the process id: a fork of a fork may reuse the id of the first process.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count)
