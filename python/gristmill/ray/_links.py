"""Measures how long answers occupy the links to other machines."""

from __future__ import annotations

import time
from typing import Any


def home(ray: Any) -> str:
    """Returns the name that Ray gives this machine."""
    name: str = ray.util.get_node_ip_address()
    return name


class LinkClock:
    """A meter of the busy time of links. Use it from a single thread.

    A transfer begins when the answer exists: Ray then reports the answer's location and starts to fetch it. Answers
    from one machine share a link. Each occupies the link from its own beginning or from the previous arrival, whichever
    is later, until its own arrival. The sum of these times is the busy time of the link.
    """

    def __init__(self, ray: Any) -> None:
        self._ray, self._home = ray, home(ray)
        #: Names of the machines of workers on other machines.
        self._machines: dict[int, str] = {}
        #: Time at which the transfer of each awaited answer was seen to begin.
        self._set_out: dict[Any, float] = {}
        #: Time of the last arrival from each machine.
        self._last: dict[str, float] = {}

    def knows(self, worker: int, machine: str) -> None:
        """Records the machine of a worker."""
        if machine != self._home:
            self._machines[worker] = machine

    def look(self, awaited: dict[Any, tuple[int, bool]]) -> None:
        """Records which of the awaited answers have begun their transfer."""
        if not self._machines:
            return
        self._set_out = {ref: when for ref, when in self._set_out.items() if ref in awaited}
        refs = [ref for ref, (worker, _) in awaited.items() if worker in self._machines and ref not in self._set_out]
        if refs:
            made, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
            self._set_out.update(dict.fromkeys(made, time.monotonic()))

    def arrived(self, ref: Any, worker: int) -> float | None:
        """Returns the seconds for which an answer occupied the link; `None` if its transfer was not seen."""
        machine = self._machines.get(worker)
        if machine is None:
            return None
        now, set_out = time.monotonic(), self._set_out.pop(ref, None)
        before, self._last[machine] = self._last.get(machine, 0.0), now
        return None if set_out is None else now - max(set_out, before)
